//! The state that the handlers of the client listener share.

use std::sync::Arc;

use super::access::Access;
use super::admission::Admission;
use super::places::Places;
use super::settings::HttpSettings;
use crate::random::Random;
use crate::service::RoomService;

/// The service, the settings, and the counters of the limits.
pub struct HandlerContext {
    pub service: RoomService,
    pub settings: HttpSettings,
    pub random: Arc<dyn Random>,
    pub access: Access,
    pub admission: Admission,
    pub streams: Arc<Places>,
}

impl HandlerContext {
    /// The state of one client listener.
    pub fn new(service: RoomService, settings: HttpSettings, random: Arc<dyn Random>) -> Arc<Self> {
        Arc::new(Self {
            service,
            random,
            access: Access::new(&settings),
            admission: Admission::new(settings.campaigns_per_minute, settings.tracked_clients_max),
            streams: Places::new(settings.streams_max, settings.streams_per_client_max),
            settings,
        })
    }
}

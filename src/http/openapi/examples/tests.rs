use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;
use crate::wire::{
    CampaignRequest, ErrorBody, Follower, Health, Leader, Member, NodeReport, RenewRequest, ResignRequest, Resigned,
    RoomCreated, RoomStatus, WatchEvent, Won,
};

/// The example as its type writes it, after it has read it.
fn read_and_written<T: Serialize + DeserializeOwned>(example: &Value) -> Value {
    serde_json::to_value(serde_json::from_value::<T>(example.clone()).unwrap()).unwrap()
}

#[test]
fn each_example_is_what_its_type_reads_and_writes() {
    for (name, example) in examples() {
        let body = example.to_string();
        let written = match name {
            "CampaignRequest" => json!(CampaignRequest::from_json(body.as_bytes()).unwrap()),
            "RenewRequest" => json!(RenewRequest::from_json(body.as_bytes()).unwrap()),
            "ResignRequest" => json!(ResignRequest::from_json(body.as_bytes()).unwrap()),
            "RoomCreated" => read_and_written::<RoomCreated>(&example),
            "Leader" => read_and_written::<Leader>(&example),
            "Won" => read_and_written::<Won>(&example),
            "Follower" => read_and_written::<Follower>(&example),
            "Resigned" => read_and_written::<Resigned>(&example),
            "RoomStatus" => read_and_written::<RoomStatus>(&example),
            "WatchEvent" => read_and_written::<WatchEvent>(&example),
            "ErrorBody" => read_and_written::<ErrorBody>(&example),
            "Health" => read_and_written::<Health>(&example),
            "Member" => read_and_written::<Member>(&example),
            "NodeReport" => read_and_written::<NodeReport>(&example),
            other => panic!("{other} is not tried"),
        };
        assert_eq!(written, example, "{name}");
    }
}

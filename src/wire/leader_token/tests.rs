use super::super::{RenewRequest, ResignRequest};
use super::*;

#[test]
fn a_leader_token_appears_in_no_debug_output() {
    let token = LeaderToken::new(Zeroizing::new("s3cret".repeat(7) + "!"));
    let renew = RenewRequest { leader_token: token.clone(), ttl_seconds: None, metadata: None };
    let resign = ResignRequest { leader_token: token.clone() };
    let shown = format!("{renew:?} {resign:?} {token:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

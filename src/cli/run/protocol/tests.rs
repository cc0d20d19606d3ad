use std::io::{Read, Write};

use super::*;

#[tokio::test]
async fn files_and_messages_arrive_and_a_closed_socket_is_noticed() {
    let (here, there) = UnixStream::pair().unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    pass_file(&here, reader.as_fd()).unwrap();
    drop(reader);
    let mut taken = std::fs::File::from(take_file(&there).unwrap());
    writer.write_all(b"through the file").unwrap();
    drop(writer);
    let mut text = String::new();
    taken.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through the file");

    let (mut here, mut there) = (Channel::new(here).unwrap(), Channel::new(there).unwrap());
    here.send(&Order::Signal(15)).await;
    here.send(&Order::Stop).await;
    assert!(matches!(there.receive::<Order>().await, Some(Order::Signal(15))));
    assert!(matches!(there.receive::<Order>().await, Some(Order::Stop)));
    drop(here);
    assert!(there.receive::<Order>().await.is_none());
}

//! What is known of a request after the transport failed, at every point where it can.

use std::sync::Arc;

use kube::{Client, Config};
use sundown_engine::wire::{Call, Method, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use super::{Requests, request};
use crate::counters::Purpose;

fn a_call() -> Call {
    Call {
        method: Method::Delete,
        path: "/api/v1/namespaces/default/pods/a".to_owned(),
        query: Vec::new(),
        accept: "application/json",
        content_type: None,
        body: Vec::new(),
    }
}

/// Sends a request to a server that says these bytes and hangs up.
async fn send_to(server: Option<&'static str>) -> anyhow::Result<Reply> {
    let socket = TcpSocket::new_v4()?;
    socket.bind("127.0.0.1:0".parse()?)?;
    let url = format!("http://{}", socket.local_addr()?).parse()?;
    let mut config = Config::new(url);
    config.default_retry = false;
    let requests = Requests::new(Client::try_from(config)?, Arc::default());
    let Some(answer) = server else {
        // Bound, so that nothing else gets the port, and never listening.
        return Ok(requests.send(Purpose::Delete, a_call()).await);
    };
    let listener = socket.listen(1)?;
    let serve = async {
        let (mut stream, _) = listener.accept().await?;
        let mut head = [0; 1024];
        assert!(stream.read(&mut head).await? > 0);
        stream.write_all(answer.as_bytes()).await
    };
    let (reply, hung_up) = tokio::join!(requests.send(Purpose::Delete, a_call()), serve);
    hung_up?;
    Ok(reply)
}

#[tokio::test]
async fn a_refused_connection_means_that_nothing_was_sent() -> anyhow::Result<()> {
    let reply = send_to(None).await?;
    assert!(matches!(reply, Reply::NotSent(_)), "{reply:?}");
    Ok(())
}

#[tokio::test]
async fn a_hang_up_after_the_request_means_that_its_fate_is_not_known() -> anyhow::Result<()> {
    let reply = send_to(Some("")).await?;
    assert!(matches!(reply, Reply::Lost(_)), "{reply:?}");
    Ok(())
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() -> anyhow::Result<()> {
    let reply = send_to(Some("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")).await?;
    assert!(matches!(reply, Reply::Lost(_)), "{reply:?}");
    Ok(())
}

#[tokio::test]
async fn codes_and_bodies_are_passed_on_as_they_are() -> anyhow::Result<()> {
    let answer = "HTTP/1.1 503 Busy\r\ncontent-length: 2\r\nretry-after: 1\r\n\r\n{}";
    let body = b"{}".to_vec();
    let expect = Reply::Answered { code: 503, body };
    assert_eq!(send_to(Some(answer)).await?, expect);
    Ok(())
}

#[test]
fn encodes_what_a_query_cannot_carry() -> anyhow::Result<()> {
    let mut call = a_call();
    call.query = vec![
        ("limit", "500".to_owned()),
        ("continue", "a b&c=d/+".to_owned()),
    ];
    let request = request(call)?;
    assert_eq!(
        request.uri(),
        "/api/v1/namespaces/default/pods/a?limit=500&continue=a+b%26c%3Dd%2F%2B"
    );
    assert!(!request.headers().contains_key("content-type"));
    Ok(())
}

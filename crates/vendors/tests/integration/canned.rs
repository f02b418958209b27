//! A server that answers as it is told, for answers that the simulator does not give.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// What is answered: a path's end, and the whole answer without the length of its body.
pub(crate) type Canned = (&'static str, &'static str, Vec<u8>);

/// A server whose answers are used up one by one; the last one for a path is given again and again.
pub(crate) struct Server {
    pub(crate) base_url: String,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(answers: Vec<Canned>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v4", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(answers));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&answers)));
            }
        });
        Self { base_url, task }
    }
}

async fn answer(mut stream: TcpStream, answers: Arc<Mutex<Vec<Canned>>>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => return,
        }
    }
    let request = String::from_utf8(request).unwrap();
    let path = request.split_whitespace().nth(1).unwrap().split('?').next().unwrap().to_owned();
    let (head, body) = next(&path, &mut *answers.lock().await);
    let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body).await;
}

fn next(path: &str, answers: &mut Vec<Canned>) -> (&'static str, Vec<u8>) {
    let places: Vec<usize> = (0..answers.len()).filter(|place| path.ends_with(answers[*place].0)).collect();
    match places.as_slice() {
        [] => ("404 Not Found", br#"{"message":"NOT_FOUND"}"#.to_vec()),
        [only] => (answers[*only].1, answers[*only].2.clone()),
        [first, ..] => {
            let (_, head, body) = answers.remove(*first);
            (head, body)
        }
    }
}

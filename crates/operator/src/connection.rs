//! The connection to the Kubernetes API, with a count of what goes over it.

use crate::error::Error;
use crate::runtime::metrics::Requests;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tower::util::MapRequestLayer;

/// A server that says nothing for so long is given up. A watch is silent for 290 s at most: then the server ends it.
const SILENCE: Duration = Duration::from_secs(300);

#[derive(Clone)]
pub struct Connection {
    pub kube: kube::Client,
    pub requests: Arc<Requests>,
}

impl Connection {
    /// By a kubeconfig file, or as it is usual: the environment's, the user's, or that of the pod.
    pub async fn open(kubeconfig: Option<&Path>) -> Result<Self, Error> {
        let config = match kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path).map_err(start)?;
                kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                    .await
                    .map_err(start)?
            }
            None => kube::Config::infer().await.map_err(start)?,
        };
        Self::with(config)
    }

    pub fn with(config: kube::Config) -> Result<Self, Error> {
        Self::giving_up_after(SILENCE, config)
    }

    fn giving_up_after(silence: Duration, mut config: kube::Config) -> Result<Self, Error> {
        config.read_timeout = Some(silence);
        // Otherwise the time that a connection lay idle would count.
        config.reset_reader_on_write = true;
        let requests = Arc::new(Requests::default());
        let counter = requests.clone();
        let count = MapRequestLayer::new(move |request: http::Request<Body>| {
            counter.count(request.method());
            request
        });
        let builder = ClientBuilder::try_from(config).map_err(start)?;
        Ok(Self {
            kube: builder.with_layer(&count).build(),
            requests,
        })
    }
}

fn start(error: impl std::error::Error) -> Error {
    Error::Start(crate::error::chain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Secret;
    use kube::Api;
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_server_that_takes_a_request_and_says_nothing_is_given_up() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((peer, _)) = silent.accept().await {
                held.push(peer);
            }
        });
        let config = kube::Config::new(url.parse().unwrap());
        let connection = Connection::giving_up_after(Duration::from_millis(50), config).unwrap();
        let secrets: Api<Secret> = Api::default_namespaced(connection.kube);
        let asked = timeout(Duration::from_secs(30), secrets.get("any")).await;
        assert!(asked.expect("given up").is_err());
    }
}

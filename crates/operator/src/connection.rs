//! The connection to the Kubernetes API, with a count of what goes over it.

use crate::error::Error;
use crate::runtime::metrics::Requests;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::Path;
use std::sync::Arc;
use tower::util::MapRequestLayer;

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

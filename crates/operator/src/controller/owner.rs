//! Whose an id of the hub is, when several objects carry it because one was copied with its annotations.

use crate::controller::cluster_deployment::index::DEPLOYMENTS_BY_ID;
use crate::controller::infra_env::index::INFRA_ENVS_BY_ID;
use crate::crd::keys::{self, annotation};
use crate::crd::{ClusterDeployment, InfraEnv};
use crate::key::Key;
use crate::runtime::Context;
use kube::{Resource, ResourceExt};
use std::sync::Arc;
use uuid::Uuid;

impl Context {
    /// The InfraEnv that stands for the hub's one with this id; copies of it stand for nothing.
    pub fn infra_env_of(&self, id: Uuid) -> Option<Arc<InfraEnv>> {
        oldest(self.cache::<InfraEnv>().by(INFRA_ENVS_BY_ID, &id.to_string()))
    }

    /// The ClusterDeployment that stands for the hub's cluster with this id; copies of it stand for nothing.
    pub fn deployment_of(&self, id: Uuid) -> Option<Arc<ClusterDeployment>> {
        oldest(
            self.cache::<ClusterDeployment>()
                .by(DEPLOYMENTS_BY_ID, &id.to_string()),
        )
    }

    /// The InfraEnv that has the right to the id of this one.
    pub fn rival_infra_env(&self, of: &InfraEnv) -> Option<Key> {
        let id = keys::hub_id(of, annotation::INFRA_ENV_ID)?;
        rival(self.infra_env_of(id)?, of)
    }

    /// The ClusterDeployment that has the right to the id of this one.
    pub fn rival_deployment(&self, of: &ClusterDeployment) -> Option<Key> {
        let id = keys::hub_id(of, annotation::CLUSTER_ID)?;
        rival(self.deployment_of(id)?, of)
    }
}

/// The oldest has the right; of two made in the same second the one that was taken care of already.
fn age<K: Resource<DynamicType = ()>>(of: &K) -> impl Ord + use<K> {
    (of.creation_timestamp(), of.finalizers().is_empty(), Key::of(of))
}

fn oldest<K: Resource<DynamicType = ()>>(objects: Vec<Arc<K>>) -> Option<Arc<K>> {
    objects.into_iter().min_by_key(|object| age(&**object))
}

/// An object that is not cached has the right only if no other has its id.
fn rival<K: Resource<DynamicType = ()>>(oldest: Arc<K>, of: &K) -> Option<Key> {
    (age(&*oldest) < age(of)).then(|| Key::of(&*oldest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::clock;
    use jiff::Timestamp;

    fn infra_env(name: &str, second: i64, guarded: bool) -> Arc<InfraEnv> {
        let mut infra_env = InfraEnv::new(name, Default::default());
        infra_env.metadata.namespace = Some("pool".into());
        infra_env.metadata.creation_timestamp = Some(clock::time(Timestamp::from_second(second).unwrap()));
        infra_env.metadata.finalizers = guarded.then(|| vec!["ours".into()]);
        Arc::new(infra_env)
    }

    fn winner(objects: &[Arc<InfraEnv>]) -> String {
        oldest(objects.to_vec()).unwrap().name_any()
    }

    #[test]
    fn the_oldest_has_the_right_whatever_its_name() {
        let (original, copy) = (infra_env("lab", 10, true), infra_env("a-copy", 20, false));
        for objects in [[original.clone(), copy.clone()], [copy.clone(), original.clone()]] {
            assert_eq!(winner(&objects), "lab");
        }
        assert_eq!(rival(original.clone(), &*copy), Some(Key::new("pool", "lab")));
        assert_eq!(rival(original.clone(), &*original), None);
    }

    #[test]
    fn of_two_made_in_the_same_second_the_one_that_is_cared_for_has_it_and_then_the_name_decides() {
        let (kept, fresh) = (infra_env("lab", 10, true), infra_env("a-copy", 10, false));
        assert_eq!(winner(&[fresh.clone(), kept]), "lab");
        assert_eq!(winner(&[infra_env("lab", 10, false), fresh]), "a-copy");
    }
}

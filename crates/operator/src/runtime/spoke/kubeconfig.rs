//! The door through which kubeconfigs of clusters come in: whoever may write such a Secret must not get at this machine.

use kube::config::{AuthInfo, Cluster, Kubeconfig};

/// The causes never quote the kubeconfig: it holds credentials.
pub fn read(text: &str) -> Result<Kubeconfig, String> {
    let unreadable = |_| "cannot parse the kubeconfig of the cluster".to_owned();
    let file = Kubeconfig::from_yaml(text).map_err(unreadable)?;
    // Also where no context leads to: nobody has a reason to keep them there.
    let clusters = file.clusters.iter().filter_map(|named| named.cluster.as_ref());
    let users = file
        .auth_infos
        .iter()
        .filter_map(|named| named.auth_info.as_ref());
    match clusters
        .filter_map(of_cluster)
        .chain(users.filter_map(of_user))
        .next()
    {
        Some(field) => Err(format!(
            "the kubeconfig of the cluster names a file or a program of this machine ({field}); put the contents \
             into it instead: certificate-authority-data, client-certificate-data, client-key-data or token"
        )),
        None => Ok(file),
    }
}

/// The field by which a cluster would make this machine open a file. Whoever names the server may name a proxy, too:
/// nothing but what is in the kubeconfig is sent to either. Every field is named here, so that a new one is thought about.
fn of_cluster(cluster: &Cluster) -> Option<&'static str> {
    let Cluster {
        certificate_authority,
        server: _,
        insecure_skip_tls_verify: _,
        certificate_authority_data: _,
        proxy_url: _,
        disable_compression: _,
        tls_server_name: _,
        extensions: _,
        other: _,
    } = cluster;
    certificate_authority.as_ref().map(|_| "certificate-authority")
}

/// The field by which a user would make this machine open a file or run a program: what comes of it would be sent to
/// whatever server the kubeconfig names. To act as somebody else is up to the cluster that is asked.
fn of_user(user: &AuthInfo) -> Option<&'static str> {
    let AuthInfo {
        token_file,
        client_certificate,
        client_key,
        auth_provider,
        exec,
        username: _,
        password: _,
        token: _,
        client_certificate_data: _,
        client_key_data: _,
        impersonate: _,
        impersonate_uid: _,
        impersonate_groups: _,
        impersonate_user_extra: _,
        extensions: _,
        other: _,
    } = user;
    let fields = [
        (exec.is_some(), "exec"),
        (auth_provider.is_some(), "auth-provider"),
        (token_file.is_some(), "tokenFile"),
        (client_certificate.is_some(), "client-certificate"),
        (client_key.is_some(), "client-key"),
    ];
    fields
        .into_iter()
        .find(|(given, _)| *given)
        .map(|(_, field)| field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn kubeconfig(cluster: Value, user: Value) -> Value {
        let mut cluster = cluster;
        cluster["server"] = json!("https://hunter2.example.com");
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{ "name": "c", "cluster": cluster }],
            "users": [{ "name": "hunter2", "user": user }],
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "hunter2" } }],
        })
    }

    fn refusal(kubeconfig: &Value) -> String {
        read(&kubeconfig.to_string()).err().unwrap_or_default()
    }

    #[test]
    fn files_and_programs_of_this_machine_are_refused_and_nothing_is_quoted() {
        let account = "/var/run/secrets/kubernetes.io/serviceaccount/token-of-hunter2";
        let users = [
            ("tokenFile", json!({ "tokenFile": account })),
            (
                "exec",
                json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": "hunter2" } }),
            ),
            (
                "auth-provider",
                json!({ "auth-provider": { "name": "gcp", "config": { "cmd-path": "hunter2" } } }),
            ),
            (
                "client-certificate",
                json!({ "client-certificate": account, "client-key-data": "aHVudGVyMg==" }),
            ),
            (
                "client-key",
                json!({ "client-certificate-data": "aHVudGVyMg==", "client-key": account }),
            ),
            // One that is good does not make up for it.
            ("tokenFile", json!({ "token": "hunter2", "tokenFile": account })),
        ];
        let mut cases: Vec<_> = users
            .into_iter()
            .map(|(field, user)| (field, kubeconfig(json!({}), user)))
            .collect();
        let authority = json!({ "certificate-authority": account });
        cases.push((
            "certificate-authority",
            kubeconfig(authority, json!({ "token": "hunter2" })),
        ));
        for (field, kubeconfig) in &cases {
            let text = refusal(kubeconfig);
            assert!(text.contains(&format!("({field})")), "{field}: {text}");
            assert!(text.contains("client-key-data"), "it says what to do: {text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn nobody_hides_them_where_no_context_leads_to_or_in_a_second_document() {
        let good = kubeconfig(json!({}), json!({ "token": "hunter2" }));
        let mut beside = good.clone();
        let idle = json!({ "name": "idle", "user": { "tokenFile": "/etc/passwd" } });
        beside["users"].as_array_mut().unwrap().push(idle);
        assert!(refusal(&beside).contains("(tokenFile)"));
        let second = kubeconfig(json!({}), json!({ "exec": { "command": "id" } }));
        let second = second.to_string().replace("hunter2", "other");
        let both = format!("{good}\n---\n{second}\n");
        assert!(read(&both).unwrap_err().contains("(exec)"));
    }

    #[test]
    fn what_a_kubeconfig_brings_along_is_accepted() {
        let data = "aHVudGVyMg==";
        for user in [
            json!({ "token": "hunter2" }),
            json!({ "username": "admin", "password": "hunter2" }),
            json!({ "client-certificate-data": data, "client-key-data": data }),
            json!({ "token": "hunter2", "as": "somebody", "as-groups": ["some"] }),
            json!({}),
        ] {
            let cluster =
                json!({ "certificate-authority-data": data, "proxy-url": "http://proxy.example.com" });
            assert_eq!(refusal(&kubeconfig(cluster, user)), "");
        }
    }
}

#!/bin/sh
# Stands in for openshift-install: writes the files the real one writes, small ones.
set -e
cd "$4"
ignition() {
    printf '{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/%s","contents":{"source":"data:,x"}}]}}' "$1"
}
secrets() {
    mkdir -p auth
    printf '{"clusterName":"c","clusterID":"%s","infraID":"c-x"}' "$(cat /proc/sys/kernel/random/uuid)" > metadata.json
    printf 'apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    certificate-authority-data: QQ==\n    server: https://api.c.example.com:6443\nusers: []\ncontexts: []\n' > auth/kubeconfig
    printf 'correct-horse' > auth/kubeadmin-password
}
case "$2" in
manifests)
    mkdir -p manifests openshift
    printf 'kind: Network\nspec: {}\n' > manifests/cluster-network-02-config.yml
    # The real one keeps its state and takes the config away.
    mv install-config.yaml .openshift_install_state.json
    ;;
ignition-configs)
    ignition opt/openshift/manifests/cvo-overrides.yaml > bootstrap.ign
    ignition etc/master > master.ign
    ignition etc/worker > worker.ign
    secrets
    ;;
single-node-ignition-config)
    ignition opt/openshift/manifests/cvo-overrides.yaml > bootstrap-in-place-for-live-iso.ign
    secrets
    ;;
esac

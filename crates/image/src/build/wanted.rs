//! Which kernel modules a discovery image carries: what is needed to see disks, network cards and the BMC.

/// Everything below these folders of a kernel's module tree.
const FOLDERS: &[&str] = &[
    "drivers/ata/",
    "drivers/char/ipmi/",
    "drivers/char/tpm/",
    "drivers/message/fusion/",
    "drivers/net/ethernet/8390/",
    "drivers/net/ethernet/amazon/",
    "drivers/net/ethernet/amd/",
    "drivers/net/ethernet/aquantia/",
    "drivers/net/ethernet/atheros/",
    "drivers/net/ethernet/broadcom/",
    "drivers/net/ethernet/chelsio/cxgb4/",
    "drivers/net/ethernet/cisco/",
    "drivers/net/ethernet/emulex/",
    "drivers/net/ethernet/google/",
    "drivers/net/ethernet/huawei/",
    "drivers/net/ethernet/intel/",
    "drivers/net/ethernet/marvell/",
    "drivers/net/ethernet/mellanox/mlx4/",
    "drivers/net/ethernet/mellanox/mlx5/",
    "drivers/net/ethernet/microsoft/",
    "drivers/net/ethernet/netronome/",
    "drivers/net/ethernet/pensando/",
    "drivers/net/ethernet/qlogic/",
    "drivers/net/ethernet/realtek/",
    "drivers/net/ethernet/sfc/",
    "drivers/net/hyperv/",
    "drivers/net/mdio/",
    "drivers/net/phy/",
    "drivers/net/vmxnet3/",
    "drivers/nvme/host/",
    "drivers/scsi/aacraid/",
    "drivers/scsi/isci/",
    "drivers/scsi/lpfc/",
    "drivers/scsi/megaraid/",
    "drivers/scsi/mpi3mr/",
    "drivers/scsi/mpt3sas/",
    "drivers/scsi/mvsas/",
    "drivers/scsi/pm8001/",
    "drivers/scsi/qla2xxx/",
    "drivers/scsi/smartpqi/",
    "drivers/usb/host/",
    "drivers/virtio/",
];

/// Single modules, by the name the kernel knows them by.
const NAMES: &[&str] = &[
    "3w_9xxx",
    "3w_sas",
    "8021q",
    "af_packet",
    "arcmsr",
    "bonding",
    "bridge",
    "cdrom",
    "crc32c_generic",
    "crc32c_intel",
    "dmi_sysfs",
    "efivarfs",
    "fat",
    "hid_generic",
    "hpsa",
    "hv_storvsc",
    "isofs",
    "loop",
    "mmc_block",
    "nls_ascii",
    "nls_cp437",
    "nls_iso8859_1",
    "nls_utf8",
    "pci_hyperv",
    "qemu_fw_cfg",
    "sd_mod",
    "sdhci_pci",
    "sdhci_acpi",
    "sr_mod",
    "uas",
    "udf",
    "usb_storage",
    "usbhid",
    "vfat",
    "virtio_blk",
    "virtio_net",
    "virtio_rng",
    "virtio_scsi",
    "vmd",
    "vmw_pvscsi",
    "xen_blkfront",
    "xen_netfront",
];

/// What no device asks for by its modalias, loaded before everything else.
pub(super) const FIRST: &[&str] = &[
    "crc32c_generic",
    "crc32c_intel",
    "af_packet",
    "nls_cp437",
    "nls_iso8859_1",
    "nls_ascii",
    "nls_utf8",
    "fat",
    "vfat",
    "isofs",
    "efivarfs",
    "cdrom",
    "sd_mod",
    "sr_mod",
    "loop",
    "dmi_sysfs",
    "ipmi_devintf",
];

/// `path` is below the kernel's module folder, `name` has underscores.
pub(super) fn is_wanted(path: &str, name: &str) -> bool {
    let below = path.strip_prefix("kernel/").unwrap_or(path);
    NAMES.contains(&name) || FOLDERS.iter().any(|folder| below.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_loaded_first_is_carried() {
        for name in FIRST.iter().filter(|name| **name != "ipmi_devintf") {
            assert!(is_wanted("kernel/x", name), "{name}");
        }
        assert!(is_wanted(
            "kernel/drivers/char/ipmi/ipmi_devintf.ko",
            "ipmi_devintf"
        ));
        for name in ["8021q", "bonding", "bridge"] {
            assert!(
                is_wanted("kernel/net/x", name),
                "{name}: settings of networks need it"
            );
        }
        assert!(!is_wanted("kernel/drivers/gpu/drm/amd/amdgpu.ko", "amdgpu"));
    }
}

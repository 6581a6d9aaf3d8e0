"""Disks: file systems, partition tables, volumes and pools."""

from __future__ import annotations

import re

from ..shell import Command
from .lines import PackLine
from .rules import Objection
from .system import MISUSE, looks_only, system

_MAKES_DISKS = (
    "mkfs",
    "mke2fs",
    "mkswap",
    "newfs",
    "mkdosfs",
    "mkntfs",
    "wipefs",
    "sfdisk",
    "sgdisk",
    "fdisk",
    "gdisk",
    "cfdisk",
    "parted",
    "blkdiscard",
    "hdparm",
    "nvme",
    "format",
    "diskutil",
    "badblocks",
    "bmaptool",
    "qemu-img",
    "asr",
    "efibootmgr",
)


def _is_device(word: str) -> bool:
    return str(word).startswith("/dev/") or bool(re.fullmatch(r"[A-Z]:", str(word)))


@system.rule(
    "format-disk",
    level="disaster",
    why="This writes a new file system or partition table over a disk.",
    instead="Make an image file: `mkfs.ext4 disk.img`",
    risk=MISUSE,
    stops=[
        "mkfs.ext4 /dev/sda",
        "mkfs -t ext4 /dev/nvme0n1",
        "wipefs -a /dev/sdb",
        "sgdisk --zap-all /dev/sda",
        "sfdisk --delete /dev/sda",
        "parted /dev/sda mklabel gpt",
        "blkdiscard /dev/sda",
        "sudo mkfs.xfs -f /dev/loop0",
        "mkswap /dev/sda2",
        "diskutil eraseDisk JHFS+ x disk2",
        "bmaptool copy x.wic /dev/sdb",
        "qemu-img convert -O raw x.qcow2 /dev/sdb",
        "asr restore --source x.dmg --target /dev/disk2 --erase",
    ],
    passes=[
        "mkfs.ext4 disk.img",
        "mkfs.erofs image.img dir/",
        "mkswap swapfile",
        "fdisk -l",
        "parted -l",
        "lsblk",
        "mkfs.ext4 --help",
        "sfdisk -d /dev/sda",
        "parted /dev/sda print",
        "wipefs /dev/sda",
        "qemu-img create -f qcow2 x.qcow2 10G",
        "efibootmgr -v",
        "wipefs -a -n /dev/sda",
    ],
)
def format_disk(command: Command, line: PackLine) -> Objection:
    program = command.program
    if looks_only(command):
        return None
    if program.startswith(("mkfs", "mke2fs", "newfs", "mkdosfs", "mkntfs", "mkswap")):
        return next((f"{word} is a disk" for word in command.operands if _is_device(word)), None)
    if program not in _MAKES_DISKS:
        return None
    if program == "diskutil":
        return bool(command.operands) and bool(
            re.match(r"(?i)erase|partition|zero|secureErase|reformat|delete", command.operands[0])
        )
    if program == "efibootmgr":
        return command.has("-B", "--delete-bootnum")
    disk = next((word for word in command.operands if _is_device(word)), None)
    if program == "asr":
        return command.has("--erase") and command.has("--target") and "it erases its target"
    if disk is None:
        return None
    return _writes_to_disk(command) and f"{disk} is a disk"


def _writes_to_disk(command: Command) -> bool:
    """Does a program for disks, that is given one, change it?"""
    words = set(command.operands)
    match command.program:
        case "wipefs":
            return command.has("-a", "--all", "-o", "--offset") and not command.has("-n")
        case "sfdisk":
            looks = ("-d", "-l", "-J", "-s", "-V", "--dump", "--list", "--json", "--verify", "--list-free")
            return not command.has(*looks)
        case "sgdisk":
            return not command.has("-p", "-i", "-v", "-b", "--print", "--info", "--verify", "--backup", "-L", "-O")
        case "parted":
            return bool({"mklabel", "mktable", "mkpart", "rm", "resizepart", "rescue"} & words)
        case "blkdiscard":
            return True
        case "badblocks":
            return command.has("-w")
        case "bmaptool":
            return "copy" in words
        case "qemu-img":
            to = command.operands[-1:] if "convert" in words else command.operands
            return bool({"create", "convert", "dd"} & words) and any(map(_is_device, to))
        case "hdparm":
            return any(word.startswith(("--security-erase", "--trim-sector-ranges")) for word in command.args)
        case "nvme":
            return bool({"format", "sanitize", "delete-ns"} & words)
    return False


@system.rule(
    "edit-partitions",
    level="destructive",
    programs=["fdisk", "gdisk", "cfdisk", "cgdisk", "parted", "cryptsetup", "gparted", "partprobe"],
    why="This opens the partition table or the encryption of a disk for changes.",
    instead="Look at it: `lsblk`",
    risk=MISUSE,
    stops=[
        "fdisk /dev/sda",
        "cfdisk /dev/sdb",
        "cryptsetup luksFormat /dev/sda2",
        "cryptsetup erase /dev/sda",
        "cryptsetup luksKillSlot /dev/sda 0",
    ],
    passes=[
        "fdisk -l /dev/sda",
        "lsblk",
        "cryptsetup luksDump /dev/sda",
        "cryptsetup open /dev/sda x",
        "parted /dev/sda print",
    ],
)
def edit_partitions(command: Command, line: PackLine) -> Objection:
    if looks_only(command):
        return None
    if command.program == "cryptsetup":
        return command.operands[:1] and bool(
            re.match(r"(?i)luksFormat|erase|luksErase|luksKillSlot|luksRemoveKey|reencrypt", command.operands[0])
        )
    if command.program == "parted" or command.has("-l", "--list", "-x"):
        return None
    return any(map(_is_device, command.operands))


@system.rule(
    "remove-volume",
    level="disaster",
    programs=[
        "lvremove",
        "vgremove",
        "pvremove",
        "lvm",
        "zpool",
        "zfs",
        "btrfs",
        "mdadm",
        "lvreduce",
        "dmsetup",
        "ceph",
        "vgreduce",
    ],
    why="This removes a volume or a pool with all that is on it.",
    instead="Take a snapshot, and let a human remove it: `zfs snapshot tank/x@now`",
    risk=MISUSE,
    stops=[
        "lvremove vg/data",
        "vgremove archive",
        "lvm lvremove vg/data",
        "pvremove /dev/sda",
        "zpool destroy tank",
        "zfs destroy -r tank/x",
        "btrfs subvolume delete /srv/x",
        "mdadm --zero-superblock /dev/sda",
    ],
    passes=[
        "zfs snapshot tank/x@now",
        "lvs",
        "zpool status",
        "zfs list",
        "lvm lvs",
        "zfs destroy -n tank/x",
        "btrfs subvolume list /",
        "mdadm --detail /dev/md0",
    ],
)
def remove_volume(command: Command, line: PackLine) -> Objection:
    program, words = command.program, command.operands
    if (
        looks_only(command)
        or (program == "zfs" and command.has("-n"))
        or (program in ("lvremove", "vgremove") and command.has("-t"))
    ):
        return None
    if program == "lvm":
        return words[:1] and words[0] in ("lvremove", "vgremove", "pvremove", "lvreduce")
    if program in ("zpool", "zfs"):
        return words[:1] == ["destroy"] or words[:1] == ["labelclear"]
    if program == "btrfs":
        return words[:2] in (["subvolume", "delete"], ["device", "delete"], ["device", "remove"])
    if program == "mdadm":
        return command.has("--zero-superblock")
    if program == "dmsetup":
        return words[:1] and words[0] in ("remove", "remove_all", "wipe_table")
    if program == "ceph":
        return words[:3] == ["osd", "pool", "delete"] or words[:2] == ["osd", "purge"]
    return bool(words)

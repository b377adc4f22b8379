package s3sink

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// fileSystem is the name of a file system by its number, as statfs(2) gives it.
func fileSystem(number uint32) string {
	switch number {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	case 0x2fc12fc1:
		return "zfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "smb"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.CEPH_SUPER_MAGIC:
		return "ceph"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC:
		return "fat"
	}
	return fmt.Sprintf("%#x", number)
}

// system notes what the file system that a folder lies on says of itself.
func (f *FolderFacts) system(dir string) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		f.Space.Err = &os.PathError{Op: "statfs", Path: dir, Err: err}
		return
	}
	f.Type = fileSystem(uint32(s.Type)) //nolint:gosec // the number has 32 bits, whatever the field
	f.ReadOnly = s.Flags&unix.ST_RDONLY != 0
	block := uint64(s.Bsize) //nolint:gosec // it is above 0
	f.Space.Value = Space{Free: s.Bavail * block, Total: s.Blocks * block, FreeFiles: s.Ffree, FileLimit: s.Files}
}

// isMount says whether a folder is the root of a file system.
func isMount(dir string) bool {
	var at, above unix.Stat_t
	return unix.Stat(dir, &at) == nil && unix.Stat(filepath.Dir(dir), &above) == nil && at.Dev != above.Dev
}

// tryUnnamed makes a file without a name.
func tryUnnamed(dir *os.Root) error {
	folder, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer folder.Close()
	fd, err := unix.Openat(int(folder.Fd()), ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, fileMode)
	if err != nil {
		return unnamedError("open unnamed file", err)
	}
	defer unix.Close(fd)
	if _, err := os.Lstat(procName(fd)); err != nil {
		return errNoUnnamed
	}
	return nil
}

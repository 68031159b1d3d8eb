package mmap

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/vfs"
)

// Stitch maps parts side by side, as one slice. Every Offset must be a multiple of the page
// size, and so must the length of every part but the last; otherwise it is ErrUnsupported.
//
// The address range is reserved first, without memory, and then covered part by part with
// MAP_FIXED: that replaces only pages of this reservation. mmap-go cannot map at a given address,
// hence the system calls.
func Stitch(parts []Part) (*Mapping, error) {
	total, err := stitched(parts, int64(os.Getpagesize()))
	if err != nil {
		return nil, err
	}
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(total), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of addresses: %w", total, err)
	}
	m := &Mapping{
		data:  unsafe.Slice((*byte)(base), total)[:total:total],
		unmap: func() error { return unix.MunmapPtr(base, uintptr(total)) },
	}
	at := int64(0)
	for _, p := range parts {
		info, err := cover(unsafe.Add(base, at), p)
		if err != nil {
			_ = m.Unmap()
			return nil, err
		}
		m.files = append(m.files, mapped{p.Path, info, int(at), p.Offset, p.Offset + p.Bytes})
		at += p.Bytes
	}
	return m, nil
}

// cover maps a part of a file over reserved addresses (MAP_FIXED), so that parts of several files follow each other
// without a gap, and rows of all shards are one slice.
func cover(at unsafe.Pointer, p Part) (os.FileInfo, error) {
	f, err := vfs.OpenIn(p.Folder, p.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = unix.MmapPtr(int(f.Fd()), p.Offset, at, uintptr(p.Bytes), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		return nil, fmt.Errorf("mmap %s: %w", p.Path, err)
	}
	return f.Stat()
}

// stitched returns the bytes of all parts together. Only whole pages can be mapped next to each other, so every part
// must begin on a page, and every part but the last must end on one.
func stitched(parts []Part, page int64) (total int64, err error) {
	for i, p := range parts {
		if p.Offset%page != 0 || (i < len(parts)-1 && p.Bytes%page != 0) || p.Bytes <= 0 {
			return 0, fmt.Errorf("parts are not whole pages of %d bytes: %w", page, ErrUnsupported)
		}
		total += p.Bytes
	}
	if total == 0 {
		return 0, fmt.Errorf("nothing to map: %w", ErrUnsupported)
	}
	return total, nil
}

// WillNeed starts to read b from disk and returns at once. It is a hint: errors mean only
// that reading happens later.
func WillNeed(b []byte) { _ = advise(b, unix.MADV_WILLNEED) }

// Populate reads b from disk and maps it, in a system call, so that the scheduler knows of
// the wait. It returns unix.EFAULT where the file has become too short, and ErrUnsupported
// on kernels older than 5.14.
func Populate(b []byte) error {
	switch err := advise(b, unix.MADV_POPULATE_READ); err {
	case unix.EINVAL, unix.ENOSYS:
		return ErrUnsupported
	case unix.EHWPOISON:
		return fmt.Errorf("memory is corrupt: %w", err)
	default:
		return err
	}
}

// ReportsResident reports whether Resident works for a file: the process must own it or be allowed
// to write it. For other files, the kernel says that all pages are in memory.
func ReportsResident(path string) bool {
	if unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) == nil {
		return true
	}
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && int(st.Uid) == unix.Geteuid()
}

// Resident returns how many of the pages that b touches are in memory, and how many pages b
// touches. All pages count as resident where the kernel does not report residency: see
// ReportsResident.
func Resident(b []byte) (resident, pages int, err error) {
	var some [64]byte
	page := os.Getpagesize()
	for len(b) > 0 {
		p := unsafe.Pointer(unsafe.SliceData(b))
		before := int(uintptr(p) % uintptr(page))
		n := min((before+len(b)+page-1)/page, len(some))
		if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(p)-uintptr(before), uintptr(n*page),
			uintptr(unsafe.Pointer(&some))); e != 0 {
			return 0, 0, fmt.Errorf("mincore: %w", e)
		}
		for _, in := range some[:n] {
			resident += int(in & 1)
		}
		pages += n
		b = b[min(len(b), n*page-before):]
	}
	return resident, pages, nil
}

// advise widens b to whole pages, which madvise demands of the start.
func advise(b []byte, advice int) error {
	if len(b) == 0 {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	before := uintptr(p) % uintptr(os.Getpagesize())
	// The pages belong to the same mapping: mappings begin at page boundaries.
	return unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(p, -int(before))), len(b)+int(before)), advice)
}

// protected replaces the memory by pages without access, in checked builds.
func protected(b []byte) bool {
	if !invariants.Enabled {
		return false
	}
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
	return err == nil
}

package mmap

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Granularity returns the alignment of the offset of [Shared]: dwAllocationGranularity, which is 64 KiB on all
// versions of Windows.
func Granularity() int64 { return 64 << 10 }

// Shared maps n > 0 bytes of a file from offset on, for reading and writing. Other processes that map them see what is
// written. A file that is shorter grows; it cannot shrink while it is mapped. [UnmapShared] gives them back.
func Shared(f *os.File, offset int64, n int) ([]byte, error) {
	end := uint64(offset) + uint64(n)
	section, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READWRITE, uint32(end>>32),
		uint32(end), nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateFileMapping", err)
	}
	defer func() { _ = windows.CloseHandle(section) }() // the view keeps it
	address, err := windows.MapViewOfFile(section, windows.FILE_MAP_WRITE, uint32(uint64(offset)>>32), uint32(offset),
		uintptr(n))
	if err != nil {
		return nil, os.NewSyscallError("MapViewOfFile", err)
	}
	// The address is not of Go's memory, so that it may be a number until here.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), n), nil
}

// UnmapShared unmaps a result of [Shared] as a whole.
func UnmapShared(b []byte) error {
	return os.NewSyscallError("UnmapViewOfFile", windows.UnmapViewOfFile(uintptr(unsafe.Pointer(unsafe.SliceData(b)))))
}

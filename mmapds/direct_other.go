//go:build !linux

package mmapds

import "os"

func openDirect(string) (*os.File, error) { return nil, errNoDirect }

func pread(f *os.File, b []byte, off int64) (int, error) { return f.ReadAt(b, off) }

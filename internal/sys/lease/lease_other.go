//go:build !unix && !windows

package lease

import "os"

func lock(*os.File, Kind) error { return ErrNone }

func wait(*os.File) error { return nil }

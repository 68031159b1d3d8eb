package source

import (
	"context"

	"github.com/penstock/penstock/cmd/internal/vfs"
)

// until is a file that is read at places until the end of ctx, whose cause is the error then: one block of records can
// take many reads.
type until struct {
	vfs.File
	ctx context.Context
}

// ReadAt implements io.ReaderAt.
func (f until) ReadAt(b []byte, off int64) (int, error) {
	if f.ctx.Err() != nil {
		return 0, context.Cause(f.ctx)
	}
	return f.File.ReadAt(b, off)
}

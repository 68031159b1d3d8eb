package feed

import (
	"context"
	"io"
	"os"

	"github.com/penstock/penstock/internal/sys/rank"
)

// portable is the transport of a feed that its client has started. It needs only what all systems
// have: a process inherits open files from its parent, and two processes can map one file.
type portable struct {
	conn           connection
	shared, arrays *os.File // where batches are put; and the arrays of the client's first message, nil if it has none
}

func (p *portable) connection() connection { return p.conn }

func (p *portable) begin() (io.Reader, *os.File, error) { return p.conn, p.arrays, nil }

func (p *portable) memory() (memory, error) { return sharedFile{p.shared}, nil }

func (p *portable) welcome(message []byte, _ memory) error {
	_, err := p.conn.Write(message)
	return err
}

func (p *portable) watch(ctx context.Context, ended func(error)) bool { return watchParent(ctx, ended) }

func (p *portable) environ() rank.Lookup { return os.LookupEnv }

// sharedFile is a file on a disk.
type sharedFile struct{ f *os.File }

func (s sharedFile) file() *os.File { return s.f }

// extend writes zeros. A hole would cost nothing, but on a full disk the process that first touches
// it would die of a fault; a failed write is an error.
func (s sharedFile) extend(size, n int64) error {
	zeros := make([]byte, min(n, 1<<20))
	for at := size; at < size+n; at += int64(len(zeros)) {
		if _, err := s.f.WriteAt(zeros[:min(int64(len(zeros)), size+n-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// discard does nothing, since not all systems can free a part of a file.
func (s sharedFile) discard(int64, int64) error { return nil }

package raw

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// listing is the samples of a source by number. Any number of goroutines may use it.
type listing interface {
	len() int64
	sample(i int64) (source.Sample, error)
	name(i int64) (string, error) // name of the sample, without its Data where possible
}

// indexed is the listing of a source with random access.
type indexed struct{ source.Indexed }

func (l indexed) len() int64                            { return l.Info().Count }
func (l indexed) sample(i int64) (source.Sample, error) { return l.Sample(i) }

// name returns the name of a sample, without opening it if the source can name samples without opening them.
func (l indexed) name(i int64) (string, error) {
	if s, ok := l.Indexed.(source.Named); ok {
		return s.SampleName(i)
	}
	s, err := l.Sample(i)
	return s.Name, err
}

// held is a listing in memory.
type held []source.Sample

func (l held) len() int64                            { return int64(len(l)) }
func (l held) sample(i int64) (source.Sample, error) { return l[i], nil }
func (l held) name(i int64) (string, error)          { return l[i].Name, nil }

// mostHeld limits the files of a source that is held in memory, in bytes.
const mostHeld = 1 << 30

// list returns the samples of a source. The samples of a source without random access are held in memory: their
// values, or of uncompressed archives only the places of members.
func list(ctx context.Context, path string, src source.Source) (listing, error) {
	if s, ok := src.(source.Indexed); ok {
		return indexed{s}, nil
	}
	if placed, ok := src.(source.Placed); !ok || !placed.Places() {
		if err := checkHeld(path, src.Info().Kind); err != nil {
			return nil, err
		}
	}
	var l held
	for sample, err := range src.Samples() {
		if err == nil && len(l)%1024 == 0 {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		l = append(l, sample)
	}
	return l, nil
}

// readInOrder are the kinds whose values are held in memory.
var readInOrder = []string{"csv", "jsonl", "parquet", "arrow", "tfrecord", "mds"}

// checkHeld returns an error if a source is too large to be held in memory.
func checkHeld(path, kind string) error {
	n, err := sourceBytes(path)
	if err == nil && n > mostHeld {
		err = fmt.Errorf("source %s: its %s of type %s can be read in their order only; prepare it: %s",
			path, units.Bytes(n), kind, shell.Rewrite(path, ""))
	}
	return err
}

// sourceBytes returns the size of all files of a source.
func sourceBytes(path string) (total int64, err error) {
	files, err := source.Files(path)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		n, err := vfs.TreeBytes(f)
		if err != nil {
			return 0, fmt.Errorf("source %s: %w", path, source.WithoutPath(err))
		}
		total += n
	}
	return total, nil
}

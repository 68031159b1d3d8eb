package part

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/sys/rank"
)

// Rank says which part of the work a process does when several processes share it. The
// samples are cut into Size runs of nearly equal length, in their order; process Rank
// makes a part of the dataset from one run, and Merge joins the parts.
type Rank struct {
	Index int    // from 0
	Size  int    // 0: this process does all
	From  string // what Rank and Size were read from; empty for flags
}

// MaxRanks limits how many processes can share the work. Tables of all ranks are made, so the size that a file of a
// part claims must have a limit.
const MaxRanks = 1_000_000

// ParseRank reads --rank and --world-size; a rank of "auto" is taken from the environment,
// as package rank reads it, and then a size is needed only if the environment has none.
func ParseRank(rank, size string) (Rank, error) { return parseRank(os.LookupEnv, rank, size) }

// parseRank reads --rank and --world-size. "auto" asks the launcher's environment; a size that is given must agree with
// it.
func parseRank(lookup rank.Lookup, number, size string) (w Rank, err error) {
	if size != "" {
		if w.Size, err = strconv.Atoi(size); err != nil || w.Size < 1 || w.Size > MaxRanks {
			return Rank{}, fmt.Errorf("--world-size %s: must be a number of processes, from 1 to %d", size, MaxRanks)
		}
	}
	switch {
	case number == "" && size == "":
		return Rank{}, nil
	case number == "":
		return Rank{}, errors.New("--world-size needs --rank, a number from 0 on, or auto")
	case number == "auto":
		p, err := rank.Work(lookup, w.Size)
		switch {
		case err != nil:
			return Rank{}, fmt.Errorf("--rank auto: %w", err)
		case p.Size == 0:
			return Rank{}, errors.New("--rank auto: the environment has none of the variables that a launcher sets (such as " +
				"SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, RANK); give numbers")
		case p.Size > MaxRanks:
			return Rank{}, fmt.Errorf("--rank auto: %s: more than %d processes", p.From, MaxRanks)
		}
		return Rank{p.Rank, p.Size, p.From}, nil
	case size == "":
		return Rank{}, errors.New("--rank needs --world-size, the number of processes")
	}
	if w.Index, err = strconv.Atoi(number); err != nil || w.Index < 0 || w.Index >= w.Size {
		return Rank{}, fmt.Errorf("--rank %s: must be auto or a number from 0 to %d", number, w.Size-1)
	}
	return w, nil
}

// Span returns which of n samples, [from, to), this process takes. The lengths of two spans differ by one sample at
// most. The quotient is multiplied, and not n, as n times the rank could overflow.
func (w Rank) Span(n int64) (from, to int64) {
	place := func(rank int64) int64 { return n/int64(w.Size)*rank + min(rank, n%int64(w.Size)) }
	return place(int64(w.Index)), place(int64(w.Index) + 1)
}

// Folder is the folder of the parts of a dataset until they are merged, next to the dataset.
func Folder(dest string) string { return filepath.Clean(dest) + ".parts" }

// Name is the name of a part: of the folder of its dataset, and with .json of the file that describes it.
func Name(rank, size int) string { return fmt.Sprintf("part-%05d-of-%05d", rank, size) }

// Note says which rank was taken from the environment, and from which variables; it is empty if the rank was given by
// flags.
func (w Rank) Note() string {
	if w.From == "" {
		return ""
	}
	return fmt.Sprintf("rank %d of %d, from %s\n", w.Index, w.Size, w.From)
}

// Path returns the path of the part's dataset.
func (w Rank) Path(dest string) string { return filepath.Join(Folder(dest), Name(w.Index, w.Size)) }

// Named returns err with the number of the part in its text, unless its text names the part already.
func (w Rank) Named(err error) error {
	text := fmt.Sprintf("part %d of %d", w.Index, w.Size)
	if err == nil || w.Size == 0 || strings.Contains(err.Error(), text) ||
		strings.Contains(err.Error(), Name(w.Index, w.Size)) {
		return err
	}
	return fmt.Errorf("%s: %w", text, err)
}

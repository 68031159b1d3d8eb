package preprocess

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/rank"
	"github.com/penstock/penstock/tensor"
)

// World says which part of the work a process does that shares it with others. The samples
// are cut into Size runs of nearly equal length, in their order; process Rank takes one of
// them and makes a part of the dataset of it, which Merge puts together.
type World struct {
	Rank int    // from 0
	Size int    // 0: this process does all
	From string // what Rank and Size were read from; empty for flags
}

// MaxWorld is how many processes can share the work.
const MaxWorld = 1_000_000

// ParseWorld reads --rank and --world-size; a rank of "auto" is taken from the environment,
// as package launch has it, where a size is needed only if that does not tell.
func ParseWorld(rank, size string) (World, error) { return parseWorld(os.LookupEnv, rank, size) }

func parseWorld(lookup rank.Lookup, number, size string) (w World, err error) {
	if size != "" {
		if w.Size, err = strconv.Atoi(size); err != nil || w.Size < 1 || w.Size > MaxWorld {
			return World{}, fmt.Errorf("--world-size %s: must be a number of processes, from 1 to %d", size, MaxWorld)
		}
	}
	switch {
	case number == "" && size == "":
		return World{}, nil
	case number == "":
		return World{}, errors.New("--world-size: says of how many processes this is one, so --rank must say which: a number from 0 on, or auto")
	case number == "auto":
		p, err := rank.Work(lookup, w.Size)
		switch {
		case err != nil:
			return World{}, fmt.Errorf("--rank auto: %w", err)
		case p.Size == 0:
			return World{}, errors.New("--rank auto: the environment has none of the variables that a launcher sets (such as SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, RANK); give numbers")
		case p.Size > MaxWorld:
			return World{}, fmt.Errorf("--rank auto: %s: more than %d processes", p.From, MaxWorld)
		}
		return World{p.Rank, p.Size, p.From}, nil
	case size == "":
		return World{}, errors.New("--rank: says which process this is, so --world-size must say of how many")
	}
	if w.Rank, err = strconv.Atoi(number); err != nil || w.Rank < 0 || w.Rank >= w.Size {
		return World{}, fmt.Errorf("--rank %s: must be auto or a number from 0 to %d", number, w.Size-1)
	}
	return w, nil
}

// problems lists what cannot be done by several processes.
func (w World) problems(c Config) (list []string) {
	if w.Size == 0 {
		return nil
	}
	if c.Append {
		list = append(list, "--append and --rank: parts are of new datasets; make one of the new samples, and append that")
	}
	if c.View {
		list = append(list, "--view and --rank: parts have no view; merge them, then: inspect view DEST")
	}
	if c.Normalize.ofImages() && c.images().DType != tensor.Uint8 && c.Transforms == nil {
		list = append(list, errFigures.Error())
	}
	return list
}

var errFigures = errors.New("--normalize dataset and --rank: the figures of all samples are needed before the first is written, and no process sees all; give MEAN/STD as numbers, or store uint8")

// run returns which of n samples, [from, to), this process takes.
func (w World) run(n int64) (from, to int64) {
	place := func(rank int64) int64 { return n/int64(w.Size)*rank + min(rank, n%int64(w.Size)) }
	return place(int64(w.Rank)), place(int64(w.Rank) + 1)
}

// partsDir is where the parts of a dataset lie until they are merged: beside it.
func partsDir(dest string) string { return filepath.Clean(dest) + ".parts" }

// destOf returns the destination that a part is of, by its path.
func destOf(part string) string { return strings.TrimSuffix(filepath.Dir(part), ".parts") }

// partName is the name of a part: its dataset, and with .json what is known of it.
func partName(rank, size int) string { return fmt.Sprintf("part-%05d-of-%05d", rank, size) }

package loader

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/loader/sampler"
)

// State is a position in a run: which batches were handed out. As JSON it has fewer than 300
// bytes. Everything but Epoch, Step and Done says what the position is in, so that Resume can
// refuse another run.
type State struct {
	Version     int    `json:"v"`
	Dataset     string `json:"dataset,omitempty"` // the Source's ID; empty if it has none
	Records     int    `json:"n"`                 // of the Source
	Sampler     string `json:"sampler"`
	Seed        uint64 `json:"seed"`
	GlobalBatch int    `json:"batch"`          // BatchSize times World.Size
	DropLast    bool   `json:"drop,omitempty"` //
	Transforms  string `json:"tf,omitempty"`   // digest of the Transforms that have an ID
	Collate     string `json:"co,omitempty"`   // the ID of Collate
	Epoch       int    `json:"epoch"`
	Step        int    `json:"step"`           // first batch of Epoch that was not handed out
	Done        string `json:"done,omitempty"` // later ones that were, with Unordered: a hexadecimal number whose bit i is Step+i
}

const stateVersion = 1

// maxName is the most characters of a name in a State; what is longer is digested.
const maxName = 32

// positionLocked is where a Loader is.
type position struct {
	epoch int
	step  int   // first that was not delivered
	early ticks // the ones after it that were
}

// State returns where the Loader is. A batch counts as handed out once the loop body has
// it, so that a State that is taken at the end of the body resumes at the next one. After
// the last batch of an epoch it is the start of the next. It costs no more than a look, and
// may be taken at any time by any goroutine.
func (ld *Loader) State() State {
	ld.mu.Lock()
	at := ld.at
	if ld.pass != nil {
		at = ld.pass.positionLocked()
	}
	ld.mu.Unlock()
	st := ld.identity
	st.Epoch, st.Step, st.Done = at.epoch, at.step, at.early.String()
	return st
}

// identify returns the State of the start.
func (o Options) identify(src Source, can Capabilities) State {
	return State{
		Version: stateVersion,
		Dataset: short(can.ID()), Records: src.Len(),
		Sampler: short(sampler.ID(o.Sampler)), Seed: o.Seed,
		GlobalBatch: o.shares().Global(), DropLast: o.DropLast,
		Transforms: o.transformsID(), Collate: short(o.Collate.ID),
	}
}

// transformsID returns a digest of the transforms that say who they are.
func (o Options) transformsID() string {
	var ids []string
	for _, name := range slices.Sorted(maps.Keys(o.Transforms)) {
		if t, ok := o.Transforms[name].(Identifier); ok {
			ids = append(ids, name, t.ID())
		}
	}
	if ids == nil {
		return ""
	}
	return digest.Of(ids)
}

func short(name string) string {
	if len(name) > maxName {
		return name[:maxName-17] + "~" + digest.Of(name)[:16]
	}
	return name
}

// Resume returns a Loader that continues after the batches that st counts: with Epochs,
// or with Epoch and the number st.Epoch. It may have any number of workers, and a World of
// another size if the global batch stays the same. It refuses the State of another run, and
// says in what the two differ. It takes as long as New.
func Resume(src Source, opts Options, st State) (*Loader, error) {
	ld, err := New(src, opts)
	if err != nil {
		return nil, err
	}
	if err := ld.adopt(st); err != nil {
		return nil, fmt.Errorf("loader: resume: %w", err)
	}
	return ld, nil
}

// adopt takes over a position.
func (ld *Loader) adopt(st State) error {
	if st.Version != stateVersion {
		return fmt.Errorf("the state has version %d; this is %d", st.Version, stateVersion)
	}
	var errs []error
	compare := func(what string, then, now any) {
		if then != now {
			errs = append(errs, fmt.Errorf("the state is of another %s: %v, now %v", what, shown(then), now))
		}
	}
	id := ld.identity
	compare("dataset", st.Dataset, id.Dataset)
	compare("number of records", st.Records, id.Records)
	compare("sampler", st.Sampler, id.Sampler)
	compare("seed", st.Seed, id.Seed)
	compare("global batch (batch size times world size)", st.GlobalBatch, id.GlobalBatch)
	compare("setting of drop last", st.DropLast, id.DropLast)
	compare("pipeline of transforms", st.Transforms, id.Transforms)
	compare("collate function (batch transforms)", st.Collate, id.Collate)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	early, err := parseTicks(st.Done)
	if err != nil || st.Step < 0 || st.Step > ld.Batches(st.Epoch) {
		return fmt.Errorf("the state is corrupt: step %d of %d, done %.40q", st.Step, ld.Batches(st.Epoch), st.Done)
	}
	ld.at = position{st.Epoch, st.Step, early}
	if st.Step == ld.Batches(st.Epoch) {
		ld.at = position{epoch: st.Epoch + 1}
	}
	ld.resumed = true
	return nil
}

// shown returns what a State has as it stands in an error: text that is long, or not for a terminal, is cut and quoted.
func shown(v any) any {
	s, ok := v.(string)
	if !ok || len(s) <= 100 && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return v
	}
	return fmt.Sprintf("%.100q", s)
}

// startOf returns where Epoch begins.
func (ld *Loader) startOf(epoch int) position {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	if ld.resumed && ld.at.epoch == epoch {
		return ld.at
	}
	return position{epoch: epoch}
}

// goOn returns where Epochs goes on.
func (ld *Loader) goOn(epoch int) position {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	if ld.at.epoch == epoch {
		return ld.at
	}
	return position{epoch: epoch}
}

// String returns the set as a hexadecimal number; it is empty for the empty set.
func (t ticks) String() string {
	if t == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(t), 16)
}

func parseTicks(s string) (ticks, error) {
	if s == "" {
		return 0, nil
	}
	t, err := strconv.ParseUint(s, 16, maxDisplacement)
	if err == nil && t&1 == 1 {
		err = errors.New("the first batch that was not handed out was")
	}
	return ticks(t), err
}

// Seek moves the Loader to where st was taken, as Resume makes one there: Epochs then continues at
// the next batch, and so does Epoch with the number st.Epoch. No epoch may be iterated meanwhile.
// It refuses the State of another run; the Loader then is where it was.
func (ld *Loader) Seek(st State) error {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	if ld.pass != nil {
		return fmt.Errorf("loader: seek: %w", ErrBusy)
	}
	if err := ld.adopt(st); err != nil {
		return fmt.Errorf("loader: seek: %w", err)
	}
	return nil
}

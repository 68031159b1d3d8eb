package rawcache

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/transforms"
)

// Mode says whether and when the dataset of a source is prepared.
type Mode string

// The modes.
const (
	Off     Mode = "off"     // never; a dataset that exists is not used either
	Auto    Mode = "auto"    // in the background while records are read from the source; a failure only warns
	Encoded Mode = "encoded" // before the first record is read; stores image files as they are
	Pixels  Mode = "pixels"  // before the first record is read; stores the results of a pipeline's head
)

// Modes lists all modes.
var Modes = []Mode{Auto, Pixels, Encoded, Off}

// retryBusy is the time between two looks for a dataset that another process is building.
const retryBusy = 2 * time.Second

// Options says how Keep finds and builds datasets.
type Options struct {
	Dir   string // of the cache; "" is the user's cache folder
	Mode  Mode   // "" is Off
	Limit int64  // bytes of the cache; 0 means as many as the disk has
	Warn  func(text string)

	// Head returns the first transforms of a field's pipeline, whose results may be stored in place
	// of the image files, or an error with the reason why no result may be stored. A nil Head means
	// that the pipeline has no such transforms.
	Head func(field string) (*transforms.Pipeline, error)

	// Tolerant says that the loader skips records that cannot be read. A dataset must have all
	// records, so if it cannot be built, the source itself is read, in every mode.
	Tolerant bool

	// Verify compares the records of the dataset with their checksums; nil compares nothing. Raw
	// files have no checksums.
	Verify mmapds.Option

	// Progress shows how far a build of Encoded and Pixels is, for which the user waits. It may be
	// nil.
	Progress Progress
}

// Progress shows how far a long job is; cli.Progress implements it.
type Progress interface {
	Begin(what string, total int64, unit string)
	Add(n int64)
	End()
}

// Keep makes src read its records from the dataset in the cache. If the cache has no such dataset,
// it lets the command preprocess cache build the dataset: with Auto in the background, while src
// reads its files, and otherwise before Keep returns. The end of ctx stops the build; what it has
// made is kept, and the next build continues it. Keep returns whether files or pixels are stored,
// and why; nil if there was nothing to choose.
//
// The build is a process of its own, so that it can run at the lowest priority and takes little
// from the training.
func Keep(ctx context.Context, src *raw.Source, o Options) (*Choice, error) {
	if o.Mode == Off || o.Mode == "" || o.Mode == Auto && src.Info().Records != "" {
		return nil, nil // arrays are read where they are
	}
	if list := src.Declared().Split; list != "" { // which decides the order of the records
		return nil, fmt.Errorf("source %s: split %q is a list in the file, and is not prepared; prepare=\"off\" reads it as it is",
			src.Name(), list)
	}
	if err := checkOutside(o.Dir, src); err != nil {
		if o.Mode == Auto && o.Dir == "" { // nobody chose the folder
			o.Warn(notPrepared(src.Name(), err))
			return nil, nil
		}
		return nil, err
	}
	c, err := o.choose(src)
	if err != nil {
		return nil, err
	}
	return c, o.keep(ctx, src)
}

// manySamples is the number of files above which taking the fingerprint would delay the first batch
// noticeably; it is then taken in the background. Tests change it.
var manySamples int64 = 20_000

// keep is Keep after choose has decided between pixels and image files.
func (o Options) keep(ctx context.Context, src *raw.Source) error {
	if o.Mode != Auto {
		return o.keepBefore(ctx, src)
	}
	if src.Info().Kind == "imagefolder" && src.Samples() > manySamples && !remote.IsURL(src.Path()) {
		go func() {
			if entry := o.find(ctx, src); entry != nil {
				o.makeLater(ctx, src, entry)
			}
		}()
		return nil
	}
	entry := o.find(ctx, src)
	if entry == nil {
		return nil
	}
	if _, err := entry.Keep(src); err != nil { // the folder stays open, since src may be read until the process ends
		o.Warn(notPrepared(src.Name(), err))
		return nil
	}
	go o.makeLater(ctx, src, entry)
	return nil
}

// keepBefore makes src read from a dataset from the first record on, and waits for its build.
func (o Options) keepBefore(ctx context.Context, src *raw.Source) error {
	entry, err := FindIntact(ctx, o.Dir, src, o.Warn)
	if err != nil {
		return err
	}
	if entry.Ready {
		return entry.use(src, o)
	}
	err = entry.make(ctx, src, o)
	if refused := refusal(""); o.Tolerant && errors.As(err, &refused) {
		o.Warn(notPrepared(src.Name(), err))
		return nil
	}
	return err
}

// find makes src read from the dataset in the cache. If the dataset is yet to be built, find
// returns its entry; otherwise, also after a failure, nil.
func (o Options) find(ctx context.Context, src *raw.Source) *Entry {
	entry, err := FindIntact(ctx, o.Dir, src, o.Warn)
	if err == nil && entry.Ready {
		if err = entry.use(src, o); err == nil {
			return nil
		}
	}
	if err != nil {
		o.failed(ctx, src, err)
		return nil
	}
	return entry
}

// makeLater builds the dataset, and makes src read from it when it is complete.
func (o Options) makeLater(ctx context.Context, src *raw.Source, e *Entry) {
	err := e.make(ctx, src, o)
	if refused := refusal(""); src.Head() != nil && errors.As(err, &refused) {
		err = fmt.Errorf(`%w; prepare="encoded" stores files in place of pixels`, err)
	}
	if err != nil {
		o.failed(ctx, src, err)
	}
}

// failed warns that src is still read from its files, unless nobody needs src any more.
func (o Options) failed(ctx context.Context, src *raw.Source, err error) {
	if ctx.Err() == nil && !errors.Is(err, raw.ErrClosed) {
		o.Warn(notPrepared(src.Name(), err))
	}
}

// notPrepared is the warning for a source that is read without a dataset.
func notPrepared(path string, err error) string {
	return fmt.Sprintf("%s is read as it is, as it could not be prepared: %v", path, err)
}

// use opens the dataset and makes src read from it. src owns the dataset afterwards.
func (e *Entry) use(src *raw.Source, o Options) error {
	var options []mmapds.Option
	if o.Verify != nil {
		options = append(options, o.Verify)
	}
	var fields []string
	for _, f := range src.Schema().Fields {
		fields = append(fields, f.Name)
	}
	ds, places, held, err := e.Open(fields, options...)
	if err != nil {
		return err
	}
	if err := src.Use(ds, places, held); err != nil {
		return errors.Join(err, ds.Close(), held.Close())
	}
	return nil
}

// refusal is the last line that a failed run of the command printed: the command refused the
// source.
type refusal string

func (r refusal) Error() string { return string(r) }

// errBusy says that another process is building the dataset. Its text is also how run recognizes
// the same error of the command, in the command's last line.
var errBusy = errors.New("another process is building it")

// make runs the command until the dataset exists, and makes src read from it. While another process
// is building the dataset, make waits and tries again: it continues the build if the other process
// stops.
func (e *Entry) make(ctx context.Context, src *raw.Source, o Options) error {
	for {
		err := e.run(ctx, src, o)
		if e.find(); e.Ready {
			return e.use(src, o)
		}
		if err == nil {
			return fmt.Errorf("%s: files were changed meanwhile", e.Source)
		}
		if !errors.Is(err, errBusy) {
			return err
		}
		select {
		case <-time.After(retryBusy):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run runs the command once, at the lowest priority. The command ends with this process: its
// standard error then is a closed pipe. It is asked to stop by SIGTERM and has 10 seconds to save
// its progress.
func (e *Entry) run(ctx context.Context, src *raw.Source, o Options) error {
	args, err := program()
	if err != nil {
		return err
	}
	args = append(args, "cache", "--progress", "json", "--json")
	if o.Dir != "" {
		args = append(args, "--cache-dir", o.Dir)
	}
	if e.Fields != "" {
		args = append(args, "--fields", e.Fields)
	}
	if o.Limit > 0 {
		args = append(args, "--cache-size", strconv.FormatInt(o.Limit, 10))
	}
	if src.Head() != nil {
		head, err := json.Marshal(src.Head())
		if err != nil {
			return err
		}
		args = append(args, "--head", string(head))
	}
	args = append(args, "--", source.WithRecords(src.Path(), e.Records))
	if nice, err := exec.LookPath("nice"); err == nil {
		args = append([]string{nice, "-n", "19"}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	shell.HideSecrets(cmd)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	events := follower{note: o.Warn}
	if o.Mode != Auto { // somebody waits
		events.progress = o.Progress
	}
	said := events.lastLine(bufio.NewScanner(stderr))
	if err := cmd.Wait(); err != nil {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case strings.Contains(said, errBusy.Error()):
			return errBusy
		case said != "":
			return refusal(said)
		}
		return fmt.Errorf("preprocess cache: %w, and no message", err)
	}
	return nil
}

// follower reads the events that a run of the command prints.
type follower struct {
	note     func(text string)
	progress Progress // nil if nobody waits
	stage    string
	done     int64
}

// event is a line of --progress json: see cli.Event. Only these keys are used here.
type event struct {
	Note, Stage, Unit string
	Done, Total       int64
}

// show passes an event on to note and progress. An event has the total so far, and Progress.Add
// takes differences.
func (f *follower) show(e event) {
	if e.Note != "" {
		f.note(e.Note)
	}
	if f.progress == nil || e.Stage == "" {
		return
	}
	if e.Stage != f.stage {
		f.end()
		f.progress.Begin(e.Stage, e.Total, e.Unit)
		f.stage, f.done = e.Stage, 0
	}
	f.progress.Add(e.Done - f.done)
	f.done = e.Done
}

// end ends the stage that is shown.
func (f *follower) end() {
	if f.progress != nil && f.stage != "" {
		f.progress.End()
	}
}

// lastLine reads events until the command closes its standard error, and returns the last line that begins with the
// program's name, without the name: the command's error. A hint to --help may follow it.
func (f *follower) lastLine(lines *bufio.Scanner) (last string) {
	defer f.end()
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		switch text := bytes.TrimSpace(lines.Bytes()); {
		case len(text) == 0:
		case text[0] != '{':
			if _, said, is := strings.Cut(string(text), ": "); is {
				last = said
			}
		case json.Unmarshal(text, &e) == nil:
			f.show(e)
		}
	}
	return last
}

// program returns the words that run preprocess: $PENSTOCK_PREPROCESS, else this program if it is
// penstock, else the program preprocess beside this one, else preprocess or penstock on the PATH. A
// program beside this one comes first because it has the same version.
func program() ([]string, error) {
	if named := os.Getenv("PENSTOCK_PREPROCESS"); named != "" {
		return []string{named}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if strings.TrimSuffix(filepath.Base(self), ".exe") == "penstock" {
		return []string{self, "preprocess"}, nil
	}
	near := filepath.Join(filepath.Dir(self), "preprocess"+filepath.Ext(self))
	if _, err := os.Stat(near); err == nil {
		return []string{near}, nil
	}
	if found, err := exec.LookPath("preprocess"); err == nil {
		return []string{found}, nil
	}
	if found, err := exec.LookPath("penstock"); err == nil {
		return []string{found, "preprocess"}, nil
	}
	return nil, errors.New("there is no program preprocess: put it next to this one, or name it in PENSTOCK_PREPROCESS")
}

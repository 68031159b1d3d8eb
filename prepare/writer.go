package prepare

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/store/hdf5/view"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/store/zarr"
	"github.com/penstock/penstock/tensor"
)

// open returns the writer of the dataset, which makes a new dataset or continues the dataset of an earlier run.
func (r *run) open(j *execute.Job) (store.Writer, error) {
	journal, err := r.journal(j)
	if err != nil {
		return nil, err
	}
	w, err := r.newWriter(j, journal)
	// files that another process builds belong to it, even if it ends now
	if err != nil && !r.Resume && !errors.Is(err, store.ErrBusy) {
		err = errors.Join(err, r.discard())
	}
	return w, err
}

// newWriter opens the writer of the format. An append in a bucket builds its shards here and sends them on commit.
func (r *run) newWriter(j *execute.Job, journal *store.Journal) (store.Writer, error) {
	if r.task.adopt != nil {
		return r.task.adopt()
	}
	c, splits := r.Config, r.splits()
	if c.DatasetFormat() == part.HDF5 {
		return newCompressing(r.progress, r.space.need, c.Append).createHDF5(c, j.Schema, hdf5.Options{
			Records: max(0, r.info.Count-r.skip), Overwrite: c.Overwrite, Append: c.Append, Splits: splits,
			Journal: journal,
		})
	}
	if c.DatasetFormat() == part.Zarr {
		return newCompressing(r.progress, r.space.need, c.Append).createZarr(c, j.Schema, zarr.Options{
			ShardBytes: c.ShardBytes, Overwrite: c.Overwrite, Append: c.Append, Splits: splits, Journal: journal,
		})
	}
	if r.appendTo != nil {
		return write.CreateAppend(r.appendTo.home, c.Dest, j.Schema, write.ShardOptions{
			ShardBytes: c.ShardBytes, Splits: splits, Journal: journal,
		})
	}
	w, err := flat.Create(c.Dest, j.Schema, flat.Options{
		ShardBytes: c.ShardBytes, Overwrite: c.Overwrite, Append: c.Append, Splits: splits, Journal: journal,
	})
	if err != nil {
		return nil, err
	}
	return r.uploader.Follow(w, c.Dest, splits)
}

// splits returns the names of the splits: the Config's, or the source's.
func (r *run) splits() []string {
	if r.Split == nil {
		return r.info.Splits
	}
	var names []string
	for _, s := range r.Split {
		names = append(names, s.Name)
	}
	return names
}

// journal returns the inputs that a later run must share with this one to continue it.
// The treatment of bad samples may differ: it did not affect the samples so far.
func (r *run) journal(j *execute.Job) (*store.Journal, error) {
	recipe, err := r.recipeOf(j)
	if err != nil {
		return nil, err
	}
	delete(recipe.Options, "on-error")
	delete(recipe.Options, "max-errors")
	options, err := json.Marshal(recipe.Options)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(r.Source)
	if err != nil {
		return nil, err
	}
	if r.producer != nil {
		path = StreamName
	}
	inputs := map[string]string{
		"source": path, "kind of source": r.info.Kind, "number of samples": fmt.Sprint(r.info.Count),
		"version": recipe.Program, "decoder": imagefile.Backend(), "options": string(options),
		"transforms": string(recipe.Transforms),
	}
	if r.task.inputs != "" {
		inputs["part of the work"] = r.task.inputs
	}
	if r.producer != nil {
		inputs[fieldsInput] = string(r.producer.Fields())
		inputs[digestInput] = r.producer.Begin.Inputs
	} else if stamp := stampOf(path); stamp != "" {
		inputs["state of the source (size and time of change)"] = stamp
	}
	return &store.Journal{Inputs: inputs, Resume: r.Resume}, nil
}

// stampOf returns a string that changes with the files that path names or matches; "" for a
// folder, whose samples are compared by name.
func stampOf(path string) string {
	files, err := source.Files(path)
	if err != nil {
		return ""
	}
	h := sha256.New()
	for _, name := range files {
		info, err := vfs.Stat(name)
		if err != nil || info.IsDir() {
			return ""
		}
		fmt.Fprintf(h, "%s\x00%d %d\n", name, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// leave closes the writer. Files of a failed run stay if they are worth
// resuming.
func (r *run) leave(w store.Writer, failed error) error {
	err := w.Close()
	if failed == nil {
		return err
	}
	if r.kept = max(r.kept, w.Kept().Records); r.kept > 0 || w.Kept().Resumed {
		return err
	}
	return errors.Join(err, r.discard())
}

// discard removes leftovers next to the destination.
func (c setup) discard() error {
	stage, err := write.OpenStage(c.Dest, write.StageOptions{Overwrite: c.Overwrite,
		Append: c.Append && c.appendTo == nil})
	if err != nil {
		return nil // the reason why the writer could not open it holds here too, and is the error
	}
	return stage.Abort()
}

// skippedName is the list of samples that were left out, next to the dataset.
func (c Config) skippedName() string { return filepath.Clean(c.Dest) + ".skipped.jsonl" }

// writeSkipped lists the samples that were left out, with the reasons, one a line. The list is
// durable before the dataset is. Without any, a list of an earlier run is removed.
func (r *run) writeSkipped() error {
	passes, left := []*runLog{r.log}, int64(0)
	if r.collector != nil {
		passes = []*runLog{r.collector, r.log}
	}
	for _, b := range passes {
		left += int64(len(b.skipped)) + b.repeated.Len()
	}
	switch {
	case r.task.quiet:
		return nil
	case left == 0:
		return r.removeSkipped()
	}
	return part.WriteDurablyBy(r.skippedName(), 0o666, func(w io.Writer) error {
		for _, b := range passes {
			if err := b.writeLeft(w); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeSkipped removes the list, and the temporary file of a process that was killed while writing it.
func (c Config) removeSkipped() error {
	stage, err := write.OpenStage(c.skippedName(), write.StageOptions{Overwrite: true})
	if err != nil {
		return err
	}
	if err = os.Remove(stage.Dest()); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, stage.Abort())
}

// writeView writes the HDF5 view of the new dataset, if a view is requested or the replaced
// dataset had one.
func writeView(c setup) error {
	if c.Rank.Size > 0 || c.DatasetFormat() != part.Flat || c.appendTo != nil {
		return nil
	}
	path := filepath.Join(c.Dest, view.Name)
	if _, err := os.Stat(path); !c.View && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d, err := store.OpenFlat(c.Dest)
	var data []byte
	if err == nil {
		data, err = view.Encode(d, c.Dest)
	}
	if err == nil {
		err = part.WriteDurably(path, data, 0o666)
	}
	if err != nil {
		return fmt.Errorf("the dataset is complete, but not its view: %w", err)
	}
	return nil
}

// storesNames reports whether records get the names of their samples. If the source is a dataset
// with names, the names are a field of the dataset, and no second field is added.
func (r *run) storesNames() (bool, error) {
	named := slices.ContainsFunc(r.info.Fields, func(f source.Field) bool { return f.Content == tensor.SourceName })
	taken := slices.ContainsFunc(r.info.Fields, func(f source.Field) bool { return f.Name == layout.SourceNameField })
	wanted := r.Names == NamesOn
	if r.Names == NamesAuto {
		wanted = !taken && filesAreRecords(r.info) && !r.inPlace()
		if r.base != nil {
			wanted = layout.SourceNames(r.base.Schema().Specs()) >= 0
		}
	}
	if wanted && taken && !named {
		return false, fmt.Errorf("the source has a field %q, as names of records are called; use --names off, or give the "+
			"field another name with --fields", layout.SourceNameField)
	}
	return wanted && !named, nil
}

// filesAreRecords reports whether samples are named for files or members of archives, and not only numbered.
func filesAreRecords(info source.Info) bool {
	switch info.Kind {
	case "imagefolder", "tar", "zip", "coco", "voc", "yolo", "maskfolder", "labelme":
		return true
	case "csv", "jsonl":
		return slices.ContainsFunc(info.Fields, source.Field.Image)
	}
	return false
}

// inPlace reports whether records are written to their final places in an HDF5 file. A dataset of records of variable
// length has no final places before its last record.
func (r *run) inPlace() bool {
	ragged := func(f source.Field) bool { return f.Image() && r.Images.KeepEncoded || !f.Image() && f.Ragged }
	return r.DatasetFormat() == part.HDF5 && r.info.Count > 0 && !r.Append && len(r.splits()) == 0 &&
		r.Compress.Method != Gzip && !slices.ContainsFunc(r.info.Fields, ragged)
}

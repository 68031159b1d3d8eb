package loadbench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
)

// trial is a benchmark that others have published, with its parameters.
type trial struct {
	Name      string `json:"name"`                // to ask for it by
	Title     string `json:"title"`               // what it measures
	Source    string `json:"source"`              // whose it is
	Published string `json:"published"`           // what they tell of it, on machines of theirs
	Differs   string `json:"differs"`             // in what this one is not theirs
	Elsewhere string `json:"elsewhere,omitempty"` // the command that measures it, if this one does not

	adjust  func(*Options)     // options of the usual tables that it is
	measure func(*bench) error // its own tables
}

// trials are those whose parameters can be had on any machine.
var trials = []trial{
	{Name: "b1", Title: "the progressive table", Source: `PyTorch, tutorial "Data Loading Optimization"`,
		Published: "32.70, 9.90, 9.82, 8.70, 8.68 and 2.83 s: 11.55x",
		Differs:   "sleep and random numbers as there; rows for records prepared beforehand, and a twin that computes, are added",
		adjust:    func(o *Options) { o.Synthetic = true }},
	{Name: "b2", Title: "batch sizes 16 to 128 of generated records, 10 batches", Source: `PyTorch, the same tutorial's file`,
		Published: "0.178, 0.365, 0.710 and 0.930 s",
		Differs:   "records are drawn in Go", measure: batchSizes},
	{Name: "b3", Title: "waits of a training loop, latencies as in the log, 20 times as fast", Source: "Earthmover, dataloader-demo, and the configuration guide after it",
		Published: "mean wait 1.384 s to 0.0126 s; epochs 2225.8 s to 168.7 s; the whole run 2231 s to 377 s",
		Differs:   "latencies are drawn from a distribution like the log's, not fetched from a cloud",
		adjust:    replayed},
	{Name: "b4", Title: "3,000 records of 3,072, 131,072 and 450,000 bytes in batches of 500", Source: "FFCV, benchmarks/suites",
		Published: "no figures", Differs: "bytes as they are stored; every cache line is read", measure: ffcvSuites},
	{Name: "b5", Title: "256x256 images, shuffled, cropped to 224 and mirrored", Source: "FFCV, ImageNet 256 RAW from memory",
		Published: "172,801 images/s on 96 virtual cores, which is 1,800 a core",
		Differs:   "random pixels; one machine's cores, so that only figures for a core compare", measure: ffcvImages},
	{Name: "b6", Title: "65,536 texts of 200 words: singly, by batches, in order", Source: "ArrayRecord, docs/performance.md",
		Published: "4,900 to 5,600, 188,000 to 490,000 and 1,090,000 records/s",
		Differs:   "not compressed; on another machine", measure: arrayRecord},
	{Name: "b7", Title: "from the start to the first batch, 16 to 128 MiB of 64-byte strings", Source: "SPDL, examples/benchmark_ipc_dataloader.py",
		Published: "2.9 to 28.3 s for spawned DataLoader workers",
		Differs:   "goroutines over one mapping: nothing is handed to other processes", measure: firstBatch},
	{Name: "b8", Title: "batches from a process to another", Source: "SPDL, examples/benchmark_arena_transport.py",
		Published: "647 MB/s pickled, 3767 MB/s through shared memory",
		Differs:   "penstock.DataLoader beside torch's, with the work of filling batches",
		Elsewhere: "make build && PATH=$PWD/bin:$PATH python3 python/bench/dataloader.py DATASET 64    (preprocess --normalize imagenet makes the DATASET)"},
	{Name: "b10", Title: "the last record of ever larger datasets", Source: "Hugging Face datasets, issue 1803",
		Published: "12.2, 92.5 and 177 us, as datasets grow", Differs: "records are numbers", measure: lastRecord},
	{Name: "b11", Title: "beginning a shuffled epoch of 1,000,000,000 records", Source: "PyTorch, pull request 103339",
		Published: "33 to 51 s, tens of gigabytes", Differs: "nothing: order and memory are both measured", measure: billion},
	{Name: "b12", Title: "simulated accelerators kept busy", Source: "DLIO, parameters of MLPerf Storage for H100",
		Published: "asked for: 90 % of the time for resnet50 and unet3d, 70 % for cosmoflow",
		Differs:   "DLIO parameters, not an MLPerf result: few files, in the page cache", measure: accelerators},
	{Name: "b13", Title: "HDF5 files read by records", Source: "h5py, gonum.org/v1/hdf5",
		Published: "no figures", Differs: "nothing: the peers are measured in the same run", Elsewhere: "make bench-peers"},
	{Name: "b14", Title: "conversion: JPEG files to a dataset", Source: "LitData, WebDataset, MosaicML Streaming",
		Published: "10:05, 32:36 and 49:49 minutes for 1.28 million images on many cores",
		Differs:   "photos per core, files of 106 KB and 428 KB; the bytes after kills are compared by go test ./cmd/internal/preprocess -run TestKill",
		Elsewhere: "make bench"},
}

func replayed(o *Options) {
	o.Synthetic, o.Tables, o.Work, o.Delay = true, []string{tableGuide}, workReplay, 293e6
	o.Batch, o.Batches, o.Epochs, o.Scale = 4, 500, 3, 0.05
}

// findTrial returns the trial of that name, or the error in the name.
func findTrial(name string) (*trial, string) {
	i := slices.IndexFunc(trials, func(t trial) bool { return strings.EqualFold(t.Name, name) })
	if i < 0 {
		names := make([]string, len(trials))
		for i := range trials {
			names[i] = trials[i].Name
		}
		return nil, fmt.Sprintf("--run %q: there are %s; loadbench --list says what they are", name, strings.Join(names, ", "))
	}
	if t := &trials[i]; t.Elsewhere != "" {
		return nil, fmt.Sprintf("--run %s: it is measured by: %s", t.Name, t.Elsewhere)
	}
	return &trials[i], ""
}

// listTrials writes what trials there are.
func listTrials(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(trials)
	}
	var b strings.Builder
	for i := range trials {
		t := &trials[i]
		command := "loadbench --run " + t.Name
		if t.Elsewhere != "" {
			command = t.Elsewhere
		}
		fmt.Fprintf(&b, "%-4s %s\n     %s: %s\n     here: %s\n     $ %s\n", t.Name, t.Title, t.Source, t.Published, t.Differs, command)
	}
	_, err := io.WriteString(w, cli.Printable(b.String()))
	return err
}

// notes says whose figures stand beside ours, and what they mean.
func (t *trial) notes() []string {
	return []string{"After " + t.Source + ". Published: " + t.Published + ".", "Here: " + t.Differs + "."}
}

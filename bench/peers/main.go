// Command peers measures shuffled batches of stored records: a loader.Loader with its default
// settings, and the loaders of batches.py, each in a process and an environment of its own.
//
//	go run ./peers [-only 150528,784,normalize,gzip] [-match NAME] [-rounds 3] [-seconds 1] [-dir FOLDER] [-python PYTHON]
//
// Each round starts new processes, one at a time: the first batch is timed from its start, with all imports. Memory is
// the anonymous memory of the process and of the processes that it started.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// work is the work that all contenders do.
type work struct {
	name, title  string
	set          string // of records
	records      int
	shape        tensor.Shape
	batch        int
	bytes        int // of a record that are written or read
	transforming bool
}

var works = []work{
	{"150528", "150,528 B, shuffled, batches of 64", "150528", 2048, tensor.Shape{3, 224, 224}, 64, 150528, false},
	{"normalize", "150,528 B, shuffled, mirrored and normalized to float32", "150528", 2048, tensor.Shape{3, 224, 224}, 64,
		4 * 150528, true},
	{"784", "784 B, shuffled, batches of 256", "784", 1 << 15, tensor.Shape{1, 28, 28}, 256, 784, false},
	{"gzip", "150,528 B a gzip chunk (HDF5, Zarr), shuffled, batches of 64", "h5py-gzip", 1024, tensor.Shape{3, 224, 224},
		64, 150528, false},
}

// environments says where each peer of batches.py lives; all other peers live in the environment of requirements.txt.
var environments = map[string]string{
	"DALI": "dali", "FFCV": "ffcv", "Grain": "grain", "Hugging Face datasets": "hf", "hidefix": "hidefix",
	"litdata": "litdata", "SPDL": "spdl",
	"MosaicML streaming": "streaming", "tf.data": "tensorflow", "tensorstore": "tensorstore", "WebDataset": "webdataset",
	"zarr-python": "zarr",
}

const ours = "penstock, default"

type bench struct {
	only, match, dir, python, child string
	rounds                          int
	seconds                         float64
	scripts                         string
	pythons, missing                map[string]string // by environment
	peers                           map[string][]string
}

func main() {
	var b bench
	flag.StringVar(&b.only, "only", "150528,normalize,784,gzip", "what to measure")
	flag.StringVar(&b.match, "match", "", "peers whose name has one of these; default: all")
	flag.StringVar(&b.dir, "dir", filepath.Join(os.TempDir(), "bench-peers"),
		"folder of the records, in each contender's format, 4 GB; existing ones are reused")
	flag.StringVar(&b.python, "python", "python3", "Python with NumPy, h5py and torch")
	flag.StringVar(&b.child, "child", "", "measure penstock alone: this work")
	flag.IntVar(&b.rounds, "rounds", 3, "rounds")
	flag.Float64Var(&b.seconds, "seconds", 1, "seconds that epochs are repeated for")
	flag.Parse()
	err := error(nil)
	if b.child != "" {
		err = b.serve()
	} else {
		err = b.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func (b *bench) run() error {
	b.scripts = measure.Find("bench/peers", "peers")
	if err := b.find(); err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir, 0o777); err != nil {
		return err
	}
	fmt.Printf("%s\nmedians of the rounds\n\n", measure.Machine())
	for _, w := range works {
		if !slices.Contains(strings.Split(b.only, ","), w.name) {
			continue
		}
		if err := b.measure(w); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// find makes the environments, and asks what peers there are.
func (b *bench) find() error {
	cmd := exec.Command(filepath.Join(b.scripts, "environments.sh"), b.python)
	cmd.Stderr = os.Stderr
	lines, err := cmd.Output()
	if err != nil {
		return err
	}
	b.pythons, b.missing = map[string]string{"": b.python}, map[string]string{}
	for line := range strings.Lines(string(lines)) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) == 3 {
			b.pythons[f[0]], b.missing[f[0]] = f[1], f[2]
		}
	}
	text, err := exec.Command(b.python, filepath.Join(b.scripts, "batches.py"), "list", "784", b.dir).Output()
	if err != nil {
		return fmt.Errorf("%s needs NumPy: %w", b.python, err)
	}
	return json.Unmarshal(text, &b.peers)
}

// result is the report of a process, and the measurements of it.
type result struct {
	Setting string  `json:"setting"`
	Rate    float64 `json:"rate"`   // records a second
	CPU     float64 `json:"cpu"`    // seconds a record
	First   float64 `json:"first"`  // batch, seconds
	Memory  float64 `json:"memory"` // bytes
}

// measure prints the table of a work.
func (b *bench) measure(w work) error {
	if err := w.write(b.dir); err != nil {
		return err
	}
	names := []string{"h5py", ours} // h5py makes the file that penstock reads
	for name, list := range b.peers {
		if slices.Contains(list, w.name) && name != "h5py" {
			names = append(names, name)
		}
	}
	slices.Sort(names[2:])
	if !slices.Contains(b.peers["h5py"], w.name) {
		names = names[1:]
	}
	results, failed := map[string][]result{}, map[string]string{}
	for round := range b.rounds + 1 {
		for _, name := range names {
			if failed[name] != "" || name != ours && !b.matches(name) {
				continue
			}
			r, err := b.one(name, w, round == 0)
			if err != nil {
				failed[name] = err.Error()
			} else if round > 0 {
				results[name] = append(results[name], r)
				fmt.Fprintf(os.Stderr, "%s, %s: %.0f records/s\n", w.name, name, r.Rate)
			}
		}
	}
	rows := [][]string{{w.title, "setting", "records/s", "of penstock's", "rounds", "us of CPU", "first batch, s",
		"memory, MB"}}
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Compare(median(results[y], rate), median(results[x], rate))
	})
	base := median(results[ours], rate)
	for _, name := range names {
		if list := results[name]; len(list) > 0 {
			v := median(list, rate)
			rows = append(rows, []string{name, list[0].Setting, fmt.Sprintf("%.0f", v), fmt.Sprintf("%.2f", v/base),
				fmt.Sprint(len(list)), fmt.Sprintf("%.2f", 1e6*median(list, func(r result) float64 {
					return r.CPU
				})),
				fmt.Sprintf("%.2f", median(list, func(r result) float64 {
					return r.First
				})), fmt.Sprintf("%.0f", median(list, func(r result) float64 { return r.Memory })/1e6)})
		}
	}
	for _, name := range names {
		if failed[name] != "" {
			rows = append(rows, []string{name, failed[name], "-", "-", "-", "-", "-", "-"})
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// matches reports whether a peer is to be measured.
func (b *bench) matches(name string) bool {
	return slices.ContainsFunc(strings.Split(b.match, ","), func(part string) bool { return strings.Contains(name, part) })
}

func rate(r result) float64 { return r.Rate }

func median(list []result, of func(result) float64) float64 {
	if len(list) == 0 {
		return 0
	}
	var all []float64
	for _, r := range list {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

// one makes a contender's copy of the records, or measures the contender.
func (b *bench) one(name string, w work, making bool) (result, error) {
	args := []string{"-child", w.name, "-dir", b.dir, "-seconds", fmt.Sprint(b.seconds)}
	program, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	if name != ours {
		env := environments[name]
		if program = b.pythons[env]; program == "" {
			return result{}, errors.New("not installed: " + b.missing[env])
		}
		args = []string{filepath.Join(b.scripts, "batches.py"), name, w.name, b.dir, fmt.Sprint(b.seconds)}
		if making {
			args[4] = "make"
		}
	} else if making {
		return result{}, nil
	}
	return start(program, args, making)
}

// start runs a contender.
func start(program string, args []string, making bool) (r result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	in, err := cmd.StdinPipe()
	if err != nil {
		return r, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return r, err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "first" {
			r.First = time.Since(began).Seconds()
			continue
		}
		if err = json.Unmarshal(lines.Bytes(), &r); err != nil {
			break
		}
		r.Memory = memory(cmd.Process.Pid)
		in.Close()
	}
	in.Close()
	if failed := cmd.Wait(); failed != nil {
		text := strings.Split(strings.TrimSpace(messages.String()), "\n")
		return r, fmt.Errorf("%w: %s", failed, text[len(text)-1])
	}
	if !making && r.Rate == 0 && err == nil {
		err = errors.New("it said nothing")
	}
	return r, err
}

// memory returns the bytes that belong to no file, of a process and its children: shared ones by halves.
func memory(pid int) (sum float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && (f[0] == "Pss_Anon:" || f[0] == "Pss_Shmem:") {
			kb, _ := strconv.ParseFloat(f[1], 64)
			sum += 1024 * kb
		}
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		list, _ := os.ReadFile(task)
		for _, child := range strings.Fields(string(list)) {
			if n, err := strconv.Atoi(child); err == nil {
				sum += memory(n)
			}
		}
	}
	return sum
}

// write makes the records, unless they exist.
func (w work) write(dir string) error {
	path := filepath.Join(dir, w.set)
	if _, err := os.Stat(path); err == nil || w.name == "gzip" {
		return nil
	}
	f := store.NewField("x", tensor.Uint8, w.shape...)
	f.Layout = tensor.CHW
	return measure.Dataset(path, f, w.records, measure.Noise())
}

// serve measures penstock.
func (b *bench) serve() error {
	i := slices.IndexFunc(works, func(w work) bool { return w.name == b.child })
	if i < 0 {
		return fmt.Errorf("no work %q", b.child)
	}
	w := works[i]
	ds, err := mmapds.Open(filepath.Join(b.dir, w.set))
	if err != nil {
		return err
	}
	defer ds.Close()
	o := loader.Options{BatchSize: w.batch, Sampler: sampler.Shuffle{}}
	if w.transforming {
		p, err := transforms.Compose(
			transforms.RandomHorizontalFlip{}, transforms.ToLayout{Layout: transforms.CHW},
			transforms.ConvertDType{DType: tensor.Float32}, transforms.ImageNet,
		)
		if err != nil {
			return err
		}
		o.Transforms = map[string]loader.Transform{"x": loader.Images{Pipeline: p, Layout: transforms.CHW}}
	}
	ld, err := loader.New(ds, o)
	if err != nil {
		return err
	}
	defer ld.Close()
	return b.epochs(ld, w)
}

// epochs iterates for some seconds, after a first epoch that is not measured, as for all other peers.
func (b *bench) epochs(ld *loader.Loader, w work) error {
	var rates []float64
	began, records := measure.Began{}, 0
	for epoch, batches := range ld.Epochs(context.Background(), math.MaxInt) {
		one, n := time.Now(), 0
		for batch, err := range batches {
			if err != nil {
				return err
			}
			if x := batch.Field("x").Bytes(); !w.transforming {
				for i := 0; i < len(x); i += 64 {
					runtime.KeepAlive(x[i])
				}
			}
			if epoch == 0 && n == 0 {
				fmt.Println("first")
			}
			n += batch.Len()
		}
		if epoch == 0 {
			began = measure.Begin()
			continue
		}
		rates, records = append(rates, float64(n)/time.Since(one).Seconds()), records+n
		if len(rates) >= 3 && began.Cost().Wall >= b.seconds {
			break
		}
	}
	slices.Sort(rates)
	answer := result{Setting: fmt.Sprintf("%d workers found", ld.Stats().Workers), Rate: rates[len(rates)/2],
		CPU: began.Cost().CPU / float64(records)}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

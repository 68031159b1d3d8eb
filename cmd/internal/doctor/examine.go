package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/internal/version"
	"github.com/penstock/penstock/loader/cuda"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/store/hdf5"
)

// finding describes one part of the machine. Advice says how to improve it; it is empty if there is
// nothing to do.
type finding struct {
	Name   string `json:"name"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"`
}

// examine makes the list of findings. A part with an empty Found, which this system does not
// report, is left out.
func examine() (list []finding) {
	add := func(f finding) {
		if f.Found != "" {
			list = append(list, f)
		}
	}
	add(finding{Name: "penstock", Found: fmt.Sprintf("%s, %s, %s/%s", version.Version(), runtime.Version(), runtime.GOOS,
		runtime.GOARCH)})
	add(finding{Name: "kernel", Found: firstLine("/proc/sys/kernel/osrelease")})
	add(processor())
	add(memory())
	add(openFiles())
	add(sharedMemory())
	add(hugePages())
	add(finding{Name: "JPEG decoder", Found: imagefile.Backend()})
	add(finding{Name: "HDF5", Found: hdf5.Version()})
	add(decoder("gzip in HDF5", chunk.Backend, "libdeflate"))
	add(decoder("zstd", stream.ZstdBackend, "libzstd"))
	add(devices())
	add(clouds())
	add(python())
	return list
}

// firstLine returns the first line of a file, or "" if the file cannot be read: on other systems
// than Linux there is no /proc.
func firstLine(path string) string {
	data, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

// processor reports the number of cores, and the vector instructions of the kernels.
func processor() finding {
	f, kernels := finding{Name: "CPU"}, kernel.Instructions()
	if kernels == "" {
		kernels = "loops in Go"
		if runtime.GOARCH == "amd64" {
			f.Advice = "it has not AVX2, FMA and F16C, so images are resized by slower loops"
		}
	}
	f.Found = fmt.Sprintf("%d cores, %d used; kernels for %s", runtime.NumCPU(), runtime.GOMAXPROCS(0), kernels)
	return f
}

// meminfo returns a value of /proc/meminfo in bytes. Its lines are "NAME: VALUE kB", where kB means
// 1024 bytes.
func meminfo(name string) (int64, bool) {
	data, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) == 3 && words[0] == name+":" {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}

// memory is the finding about the machine's memory. In a container, the total is the container's
// limit.
func memory() finding {
	total := usage.Memory()
	free, known := meminfo("MemAvailable")
	if total == 0 || !known {
		return finding{Name: "memory", Found: "this system does not say how much memory there is"}
	}
	return finding{Name: "memory", Found: fmt.Sprintf("%s, %s of it available; datasets that fit are read from there "+
		"after the first epoch", units.Bytes(total), units.Bytes(free))}
}

// fewFiles is the limit of open files below which doctor gives advice. Each shard of a dataset and
// each connection to a store takes a descriptor.
const fewFiles = 4096

// openFiles reports the soft limit of open files, which is the first number of the line in
// /proc/self/limits.
func openFiles() finding {
	data, _ := os.ReadFile("/proc/self/limits")
	for line := range strings.Lines(string(data)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		if !ok {
			continue
		}
		words := strings.Fields(rest)
		f := finding{Name: "open files", Found: words[0] + " at most"}
		if n, err := strconv.Atoi(words[0]); err == nil && n < fewFiles {
			f.Advice = fmt.Sprintf("datasets of many shards may need more: ulimit -n %d", fewFiles)
		}
		return f
	}
	return finding{}
}

// hugePages reports the mode of transparent huge pages. The kernel lists all modes and puts the
// current one in brackets: "always [madvise] never".
func hugePages() finding {
	line := firstLine("/sys/kernel/mm/transparent_hugepage/enabled")
	_, mode, _ := strings.Cut(line, "[")
	mode, _, _ = strings.Cut(mode, "]")
	f := finding{Name: "huge pages", Found: mode}
	switch mode {
	case "always", "madvise":
		f.Found += ": used for the memory of batches"
	case "never":
		f.Advice = "batches are filled somewhat faster with them: echo madvise | sudo tee " +
			"/sys/kernel/mm/transparent_hugepage/enabled"
	}
	return f
}

// decoder reports what decodes a compression. found is the decoder of this build; advice follows if
// it is not the named C library, which is faster than the decoder in Go.
func decoder(compression, found, library string) finding {
	f := finding{Name: compression, Found: found}
	if found != library {
		f.Advice = library + " is faster: wheels for Linux have it where make wheel reached PyPI, and builds with cgo " +
			"and -tags " + library
	}
	return f
}

// devices reports the CUDA devices. The error of package cuda has the reason and the remedy,
// separated by a semicolon.
func devices() finding {
	n, err := cuda.Count()
	if err != nil {
		reason, remedy, _ := strings.Cut(err.Error(), "; ")
		return finding{Name: "CUDA", Found: "none: " + reason, Advice: remedy}
	}
	return finding{Name: "CUDA", Found: units.Counted(int64(n), "device")}
}

// clouds reports the schemes of URLs that this build can open.
func clouds() finding {
	if !cloud.Built {
		return finding{Name: "buckets", Found: "https:// and hf:// alone in this build",
			Advice: "build without -tags nocloud for s3://, gs://, azblob:// and hdfs://"}
	}
	return finding{Name: "buckets", Found: remote.SchemeList()}
}

// python reports the first Python on the PATH that runs, and whether it has the package penstock.
func python() finding {
	for _, name := range []string{"python3", "python"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.Command(path, "-c", "import sys; v = '%d.%d' % sys.version_info[:2]\ntry:\n import penstock; "+
			"print(v, 'with penstock', penstock.__version__)\nexcept ImportError: print(v)").Output()
		if err != nil {
			continue
		}
		f := finding{Name: "Python", Found: filepath.Base(path) + " " + strings.TrimSpace(string(out))}
		if !strings.Contains(f.Found, "penstock") {
			f.Advice = "to load datasets in Python, install the wheel: make wheel in a clone of penstock, then pip install " +
				"dist/penstock-*.whl"
		}
		return f
	}
	return finding{Name: "Python", Found: "none in PATH"}
}

//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// The fake declares its functions, and results have their numbers, as NVIDIA's cuda.h has it;
// so do the flags and attributes of this package. The package is bound to the fake's
// signatures by every other test.
func TestHeader(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: ", err)
	}
	folders := headers()
	if len(folders) == 0 {
		t.Skip("needs cuda.h: install CUDA's toolkit (CUDA_HOME names it), or pip install nvidia-cuda-runtime-cu12 for the Python that PYTHON names")
	}
	fake, err := filepath.Abs("testdata/fakecuda/fakecuda.c")
	require.NoError(t, err)
	source := filepath.Join(t.TempDir(), "check.c")
	require.NoError(t, os.WriteFile(source, []byte(fmt.Sprintf("#include %q\n%s", fake, assertions())), 0o600))
	for _, folder := range folders {
		out, err := exec.Command("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Wmissing-prototypes", "-Werror", "-DCUDA_H", "-I", folder, "-fsyntax-only", source).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", folder, err, out)
		} else {
			t.Log("agrees with ", folder)
		}
	}
}

// assertions compares the package's numbers with the header's.
func assertions() string {
	var b strings.Builder
	for name, value := range map[string]int{
		"CU_MEMHOSTALLOC_PORTABLE": hostAllocPortable, "CU_MEMHOSTREGISTER_PORTABLE": hostRegisterPortable,
		"CU_MEMHOSTREGISTER_READ_ONLY": hostRegisterReadOnly, "CU_STREAM_NON_BLOCKING": streamNonBlocking,
		"CU_EVENT_BLOCKING_SYNC": eventBlockingSync, "CU_EVENT_DISABLE_TIMING": eventDisableTiming,
		"CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED":           attrHostRegister,
		"CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED": attrReadOnlyHostRegister,
		"CUDA_ERROR_OUT_OF_MEMORY":                              int(outOfMemory),
		"CUDA_ERROR_STUB_LIBRARY":                               int(stubLibrary), "CUDA_ERROR_NO_DEVICE": int(noDevice),
		"CUDA_ERROR_INVALID_DEVICE": int(invalidDevice), "CUDA_ERROR_ILLEGAL_ADDRESS": illegalAddress,
		"CUDA_ERROR_SYSTEM_NOT_READY": 802, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": 803,
		"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": 804, "CUDA_ERROR_UNKNOWN": 999,
		"sizeof(CUdeviceptr)": 8,
	} {
		fmt.Fprintf(&b, "_Static_assert(%s == %d, %q);\n", name, value, name)
	}
	return b.String()
}

// headers returns the folders with a cuda.h: the toolkit's, and what Python has installed.
func headers() []string {
	places := []string{"/usr/local/cuda/include", os.Getenv("CUDA_HOME") + "/include", os.Getenv("CUDA_PATH") + "/include"}
	found := inPythons("nvidia/*/include/cuda.h", "triton/backends/nvidia/include/cuda.h")
	for _, place := range places {
		if file := filepath.Join(place, "cuda.h"); fileExists(file) {
			found = append(found, file)
		}
	}
	for i, file := range found {
		found[i] = filepath.Dir(file)
	}
	return found
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// inPythons returns the files of the packages of all interpreters that match a pattern.
func inPythons(patterns ...string) (found []string) {
	for python := range pythontest.All("import sysconfig") {
		site, err := exec.Command(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").Output()
		if err != nil {
			continue
		}
		for _, pattern := range patterns {
			files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(site)), pattern)) // the patterns are good
			found = append(found, files...)
		}
	}
	return found
}

package meta_test

import (
	"fmt"
	"os"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

func ExampleOpen() {
	r, err := os.Open("testdata/small-old-basic.h5")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := meta.Open(r, info.Size())
	if err != nil {
		fmt.Println(err)
		return
	}
	for d := range f.All() {
		fmt.Println(d.Path, d.Type, d.Dims, d.Layout.Kind)
		if err := d.Mappable(); err != nil {
			fmt.Println("  copied:", err)
		}
	}
	// Output:
	// /again uint8 [4 3] contiguous
	// /c compound{a: int32, b: array(2,) of float64} [2] contiguous
	//   copied: type compound{a: int32, b: array(2,) of float64} cannot be mapped
	// /flag bool [2] contiguous
	// /g/u1 uint8 [4 3] contiguous
	// /i8be big-endian int64 [3] contiguous
	//   copied: type big-endian int64 cannot be mapped: its bytes must be swapped
	// /soft uint8 [4 3] contiguous
	// /typed float32 [2] contiguous
	//   copied: storage that was never allocated cannot be mapped
}

// Command _neon writes kernels_arm64.s and kernels_arm64.go of the packages kernel and jpeg:
// NEON spellings of their loops. Each function here has in one of them a Go loop that says
// what it computes.
//
// Kernels keep the conventions of those for amd64 and, where one Go file calls both, their
// parameters. Go's assembler has the loads, stores, table look-ups and integer additions of
// NEON, but neither its arithmetic in floating point nor multiplications of integers: these
// are written as words, each with its instruction in a comment. The tests here take every
// word apart again and compare.
package main

import (
	"flag"
	"log"
	"os"
)

func main() {
	pkg := flag.String("pkg", "", "package: kernel or jpeg")
	out := flag.String("out", "", "file for the assembly")
	stubs := flag.String("stubs", "", "file for the declarations")
	flag.Parse()
	all := packages[*pkg]()
	for name, text := range map[string]string{*out: assembly(all), *stubs: declarations(*pkg, all)} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

var packages = map[string]func() []*kernel{"kernel": loopKernels, "jpeg": decoderKernels}

func decoderKernels() []*kernel {
	return []*kernel{idctPair(), sumRows(), doubleColumns(), yccToRGBX()}
}

func loopKernels() []*kernel {
	return []*kernel{
		resizeRows(), resizeGray(), resizeColumn(),
		norm("normF32", exact, storeF32),
		norm("normF16", exact, storeF16),
		norm("normBF16", exact, storeBF16),
		norm("affineF16", affine, storeF16),
		norm("affineBF16", affine, storeBF16),
		planesNorm("planesF32", exact, storeF32),
		planesNorm("planesF16", exact, storeF16),
		planesNorm("planesBF16", exact, storeBF16),
		planesNorm("affinePlanesF16", affine, storeF16),
		planesNorm("affinePlanesBF16", affine, storeBF16),
		planes("planes3", 3), planes("planes4", 4),
		interleave(), pack(),
		gray("gray3", 3), gray("gray4", 4),
		reverseRows(), reverse3(),
		moments(), sum32(), squares32(),
		widenF16(), widenBF16(),
		standardize64(), scale64(), clip64(),
		widen8(), widen32(), narrow32(), round32(),
		prefetch(),
	}
}

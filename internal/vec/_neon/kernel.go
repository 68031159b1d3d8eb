package main

import (
	"fmt"
	"strings"
)

// A gp is a general register: R0 to R17 and R19 to R25, which belong to no one.
type gp int

// String returns the assembler's name.
func (r gp) String() string {
	if r > 17 {
		r++ // R18 is the system's
	}
	return fmt.Sprintf("R%d", int(r))
}

// A vec is one of the registers V0 to V31.
type vec int

// String returns the assembler's name.
func (v vec) String() string { return fmt.Sprintf("V%d", int(v)) }

// A param is where in the frame a parameter lies.
type param struct {
	name         string
	offset, size int
}

// A kernel is a function in the making. A register is given out once.
type kernel struct {
	name, signature, doc string

	params []param
	body   strings.Builder
	gps    int
	vecs   int
}

// begin returns an empty kernel. The signature is the text between the parentheses.
func begin(name, signature, doc string) *kernel {
	return &kernel{name: name, signature: signature, doc: doc, params: parse(signature)}
}

// parse lays out parameters, of which each takes 8 bytes, or 2 if it is an uint16 behind all
// others.
func parse(signature string) []param {
	words := strings.Split(signature, ", ")
	params := make([]param, len(words))
	goType := ""
	for i := len(words) - 1; i >= 0; i-- {
		name, its, has := strings.Cut(words[i], " ")
		if has {
			goType = its
		}
		params[i] = param{name: name, size: 8}
		if goType == "uint16" {
			params[i].size = 2
		}
	}
	for i := 1; i < len(params); i++ {
		params[i].offset = params[i-1].offset + params[i-1].size
	}
	return params
}

// finish ends the function.
func (k *kernel) finish() *kernel {
	k.op("RET")
	return k
}

// op adds a line of assembly: %v stands for an operand.
func (k *kernel) op(format string, operands ...any) {
	name, rest, _ := strings.Cut(fmt.Sprintf(format, operands...), " ")
	k.body.WriteString(strings.TrimRight(fmt.Sprintf("\t%-8s %s", name, rest), " ") + "\n")
}

// label adds a label.
func (k *kernel) label(name string) { fmt.Fprintf(&k.body, "\n%s:\n", name) }

// gp returns a register that is not in use.
func (k *kernel) gp() gp {
	if k.gps++; k.gps > 25 {
		panic(k.name + ": too few general registers")
	}
	return gp(k.gps - 1)
}

// vec returns a register that is not in use.
func (k *kernel) vec() vec {
	if k.vecs++; k.vecs > 32 {
		panic(k.name + ": too few vector registers")
	}
	return vec(k.vecs - 1)
}

// several returns n registers with neighbouring numbers.
func (k *kernel) several(n int) []vec {
	v := make([]vec, n)
	for i := range v {
		v[i] = k.vec()
	}
	return v
}

// arg returns the operand that is a parameter.
func (k *kernel) arg(name string) (p param, operand string) {
	for _, p := range k.params {
		if p.name == name {
			return p, fmt.Sprintf("%s+%d(FP)", name, p.offset)
		}
	}
	panic(k.name + " has no parameter " + name)
}

// param loads a parameter.
func (k *kernel) param(name string) gp {
	r := k.gp()
	p, operand := k.arg(name)
	load := "MOVD"
	if p.size == 2 {
		load = "MOVHU"
	}
	k.op("%s %s, %v", load, operand, r)
	return r
}

// number loads a float64 parameter into both halves of a register.
func (k *kernel) number(name string) vec {
	v := k.vec()
	_, operand := k.arg(name)
	k.op("FMOVD %s, F%d", operand, v)
	k.op("VDUP %v.D[0], %v.D2", v, v)
	return v
}

// constant returns a register that holds 16 bytes.
func (k *kernel) constant(low, high uint64) vec {
	v := k.vec()
	k.op("VMOVQ $%#x, $%#x, %v", low, high, v)
	return v
}

// load reads 16 bytes, load8 reads 8 and clears the rest, store writes 16 bytes.
func (k *kernel) load(base gp, disp int, v vec)  { k.op("FMOVQ %d(%v), F%d", disp, base, v) }
func (k *kernel) load8(base gp, disp int, v vec) { k.op("FMOVD %d(%v), F%d", disp, base, v) }
func (k *kernel) store(v vec, base gp, disp int) { k.op("FMOVQ F%d, %d(%v)", v, disp, base) }

// plus returns base + i<<shift in a register of its own, which set computes again.
func (k *kernel) plus(base, i gp, shift int) (r gp, set func()) {
	r = k.gp()
	return r, func() { k.op("ADD %v<<%d, %v, %v", i, shift, base, r) }
}

// blocks emits a loop over n elements in blocks: body works on the element at i. i is set
// back once so that the last block ends at n.
func (k *kernel) blocks(n, i gp, block int, body func()) {
	last := k.gp()
	k.op("MOVD ZR, %v", i)
	k.op("SUB $%d, %v, %v", block, n, last)
	k.label("block")
	body()
	k.op("CMP %v, %v", last, i)
	k.op("BGE done")
	k.op("ADD $%d, %v", block, i)
	k.op("CMP %v, %v", last, i)
	k.op("BLE block")
	k.op("MOVD %v, %v", last, i)
	k.op("B block")
	k.label("done")
}

// loop emits a loop that ends when n, which body lowers, is no longer positive.
func (k *kernel) loop(n gp, step int, body func()) {
	k.label("loop")
	body()
	k.op("SUBS $%d, %v, %v", step, n, n)
	k.op("BGT loop")
}

// list writes registers the way structure loads and stores take them.
func list(v []vec, arrangement string) string {
	var names []string
	for _, r := range v {
		names = append(names, fmt.Sprintf("%v.%s", r, arrangement))
	}
	return "[" + strings.Join(names, ", ") + "]"
}

const generated = "// Code generated by internal/vec/_neon. DO NOT EDIT.\n\n" +
	"//go:build !purego\n\n"

// assembly returns the text of the .s file.
func assembly(all []*kernel) string {
	var b strings.Builder
	b.WriteString(generated + "#include \"textflag.h\"\n")
	for _, k := range all {
		last := k.params[len(k.params)-1]
		fmt.Fprintf(&b, "\n// func %s(%s)\nTEXT ·%s(SB), NOSPLIT, $0-%d\n%s", k.name, k.signature, k.name, last.offset+last.size, k.body.String())
	}
	return b.String()
}

// declarations returns the text of the .go file.
func declarations(pkg string, all []*kernel) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%spackage %s\n", generated, pkg)
	for _, k := range all {
		fmt.Fprintf(&b, "\n// %s %s\n//\n//go:noescape\nfunc %s(%s)\n", k.name, strings.ReplaceAll(k.doc, "\n", "\n// "), k.name, k.signature)
	}
	return b.String()
}

//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/penstock/penstock/tensor"
)

// ptxThread runs one thread of a kernel of normalize.ptx: of PTX, only the
// instructions that occur. Registers and parameters hold bits.
type ptxThread struct {
	regs   map[string]uint64
	params map[string]uint64
	src    []byte // memory at address srcAt
	dst    []byte // memory at address dstAt
}

const srcAt, dstAt = 1 << 40, 1 << 41

// interpret runs a kernel over all bytes of src, by a grid of the given blocks and threads.
func interpret(k *normalizer, src []byte, size, blocks, threads int) ([]byte, error) {
	code, err := ptxEntry(k.kernel)
	if err != nil {
		return nil, err
	}
	dst := make([]byte, len(src)*size)
	for block := range blocks {
		for thread := range threads {
			t := ptxThread{src: src, dst: dst, params: ptxParams(k, len(src)), regs: map[string]uint64{
				"%ctaid.x": uint64(block), "%ntid.x": uint64(threads), "%tid.x": uint64(thread), "%nctaid.x": uint64(blocks),
			}}
			if err := t.run(code); err != nil {
				return nil, err
			}
		}
	}
	return dst, nil
}

func ptxParams(k *normalizer, total int) map[string]uint64 {
	a := k.args
	p := map[string]uint64{
		"dst": dstAt, "src": srcAt, "total": uint64(total),
		"channels": uint64(a.channels), "plane": uint64(a.plane), "pixel": uint64(a.pixel), "channel": uint64(a.channel),
		"scale": uint64(math.Float32bits(a.scale)),
	}
	for c := range maxChannels {
		p["mean"+strconv.Itoa(c)] = uint64(math.Float32bits(a.mean[c]))
		p["std"+strconv.Itoa(c)] = uint64(math.Float32bits(a.std[c]))
	}
	return p
}

// ptxEntry returns the instructions of an entry, labels included.
func ptxEntry(name string) ([]string, error) {
	_, rest, ok := strings.Cut(string(normalizePTX), ".entry "+name+"(")
	if !ok {
		return nil, fmt.Errorf("no entry %s", name)
	}
	_, body, _ := strings.Cut(rest, "{")
	body, _, _ = strings.Cut(body, "}")
	var code []string
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, ".reg") {
			code = append(code, strings.TrimSuffix(line, ";"))
		}
	}
	return code, nil
}

var errPTX = errors.New("an instruction that the test does not know")

func (t *ptxThread) run(code []string) error {
	for pc := 0; pc < len(code); pc++ {
		line := code[pc]
		if strings.HasSuffix(line, ":") {
			continue
		}
		if guard, rest, ok := strings.Cut(line, " "); ok && guard[0] == '@' {
			if t.regs[guard[1:]] == 0 {
				continue
			}
			line = rest
		}
		f := strings.Fields(strings.ReplaceAll(line, ",", " "))
		switch f[0] {
		case "ret":
			return nil
		case "bra":
			pc = labelAt(code, f[1])
		default:
			if err := t.step(f[0], f[1:]); err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
		}
	}
	return errors.New("the code ends without ret")
}

func labelAt(code []string, label string) int {
	for i, line := range code {
		if line == label+":" {
			return i
		}
	}
	return len(code)
}

// value returns an operand: a register, or a number.
func (t *ptxThread) value(operand string) uint64 {
	if operand[0] == '%' {
		return t.regs[operand]
	}
	v, err := strconv.ParseUint(operand, 10, 64)
	if err != nil {
		panic(err)
	}
	return v
}

// step runs an instruction that is not a jump.
func (t *ptxThread) step(op string, args []string) error {
	if strings.HasPrefix(op, "ld.") || strings.HasPrefix(op, "st.") {
		return t.access(op, args)
	}
	v := make([]uint64, 4)
	for i, a := range args[1:] {
		v[i] = t.value(a)
	}
	result, err := compute(op, v)
	if err == nil {
		t.regs[args[0]] = result
	}
	return err
}

// compute returns the result of an arithmetic instruction, as PTX defines it.
func compute(op string, v []uint64) (uint64, error) {
	word := func(x uint64) (uint64, error) { return x & math.MaxUint32, nil }
	a, b := uint32(v[0]), uint32(v[1])
	f, g := math.Float32frombits(a), math.Float32frombits(b)
	number := func(x float32) (uint64, error) { return uint64(math.Float32bits(x)), nil }
	truth := func(x bool) (uint64, error) {
		if x {
			return 1, nil
		}
		return 0, nil
	}
	switch op {
	case "cvta.to.global.u64", "mov.u32", "mov.b32", "mov.f32", "cvt.u64.u32":
		return v[0], nil
	case "add.u64":
		return v[0] + v[1], nil
	case "shl.b64":
		return v[0] << v[1], nil
	case "add.u32":
		return word(v[0] + v[1])
	case "sub.u32":
		return word(v[0] - v[1])
	case "mul.lo.u32":
		return word(v[0] * v[1])
	case "mad.lo.u32":
		return word(v[0]*v[1] + v[2])
	case "div.u32":
		return uint64(a / b), nil
	case "shr.u32":
		return uint64(a >> b), nil
	case "and.b32":
		return uint64(a & b), nil
	case "setp.ge.u32":
		return truth(a >= b)
	case "setp.eq.u32":
		return truth(a == b)
	case "selp.f32":
		return v[1-v[2]], nil
	case "cvt.rn.f32.u32":
		return number(float32(a))
	case "div.rn.f32":
		return number(f / g)
	case "sub.rn.f32":
		return number(f - g)
	case "cvt.rn.f16.f32":
		return uint64(tensor.HalfOf(f)), nil
	case "cvt.u16.u32":
		return uint64(uint16(a)), nil
	}
	return 0, errPTX
}

// access runs a load or a store.
func (t *ptxThread) access(op string, args []string) error {
	inside := func(s string) string { return strings.Trim(s, "[]") }
	switch op {
	case "ld.param.u64", "ld.param.u32", "ld.param.f32":
		v, ok := t.params[inside(args[1])]
		if !ok {
			return errPTX
		}
		t.regs[args[0]] = v
	case "ld.global.u8":
		t.regs[args[0]] = uint64(t.src[t.value(inside(args[1]))-srcAt])
	case "st.global.f32":
		binary.LittleEndian.PutUint32(t.dst[t.value(inside(args[0]))-dstAt:], uint32(t.value(args[1])))
	case "st.global.b16":
		binary.LittleEndian.PutUint16(t.dst[t.value(inside(args[0]))-dstAt:], uint16(t.value(args[1])))
	default:
		return errPTX
	}
	return nil
}

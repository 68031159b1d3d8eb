package decode

func idctPair(dst []byte, stride int, coefs *[128]int16, quant *[64]uint16) {
	idctPairGo(dst, stride, coefs, quant)
}

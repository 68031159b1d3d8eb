package remote

import "regexp"

// redacted stands where a secret was.
const redacted = "REDACTED"

// secretName ends with what a name has whose value is a secret.
const secretName = `[\w.-]*(?:secret|token|passw(?:or)?d|passphrase|signature|credential|access[_-]?key(?:[_-]?id)?|account[_-]?key|api[_-]?key|shared[_-]?key|private[_-]?key|\bpwd|\bpass|_pwd|_pass|\bsas|_sas|\bsig|\bkey|\bauth|\bcode_verifier)`

// Patterns of secrets in URLs, headers and the messages of SDKs.
var secrets = []struct {
	pattern *regexp.Regexp
	with    string
}{
	// user:password@ of a URL, also where the password was not escaped
	{regexp.MustCompile(`(://)[^/?#\s"'@:]*:[^\s"']*@`), "${1}" + redacted + "@"},
	{regexp.MustCompile(`(://)[^/?#\s"'@]*@`), "${1}" + redacted + "@"},
	{regexp.MustCompile(`(?i)(%3A%2F%2F)[^&\s"']*%40`), "${1}" + redacted + "%40"},
	// elements of XML whose names say so
	{regexp.MustCompile(
		`(?is)(<([\w:.-]*(?:secret|token|password|signature|credential|accesskeyid)[\w:.-]*)(?:\s[^<>]*)?>)[^<]*`),
		"${1}" + redacted},
	// an option whose name says that its value is a secret, in quotes or up to where it ends
	{regexp.MustCompile(`(?i)(` + secretName + `\\?["']?\s*[=:]\s*\\?")(?:[^"\\]|\\[^"])*`), "${1}" + redacted},
	{regexp.MustCompile(`(?i)(` + secretName + `["']?\s*[=:]\s*')[^']*`), "${1}" + redacted},
	{regexp.MustCompile(`(?i)(` + secretName + `)(["']?\s*[=:]\s*)(?:(?:Bearer|Basic)\s+)?[^&\s"',;)}>]+`),
		"${1}${2}" + redacted},
	// Authorization headers
	{regexp.MustCompile(`(?i)(authorization["']?\s*[=:]\s*["']?)(?:[\w-]+\s+)?[^\r\n"']+`), "${1}" + redacted},
	{regexp.MustCompile(`(?i)\b(bearer\s+)[\w.~+/=-]{8,}`), "${1}" + redacted},
	// OAuth tokens of Google and GitHub, and signed tokens (JWT)
	{regexp.MustCompile(`\bya29\.[\w.-]+|\b1//0[\w-]{10,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}|\bhf_\w{16,}`),
		redacted},
	{regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*`), redacted},
	// private keys
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`), redacted},
	// ids of AWS access keys
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), redacted},
}

// Redact returns text without the passwords, keys and signatures that it can be seen to have:
// user and password of URLs, options and headers whose names say so, ids of AWS keys. All that is
// printed, logged or stored goes through it.
func Redact(text string) string {
	for _, s := range secrets {
		text = s.pattern.ReplaceAllString(text, s.with)
	}
	return text
}

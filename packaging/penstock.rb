# A formula for Homebrew. make release fills in versions and checksums.
class Penstock < Formula
  desc "Load training data for PyTorch, JAX, NumPy and Go"
  homepage "https://github.com/penstock/penstock"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://github.com/penstock/penstock/releases/download/v@VERSION@/penstock-@VERSION@-darwin-arm64.tar.gz"
      sha256 "@darwin-arm64@"
    end
    on_intel do
      url "https://github.com/penstock/penstock/releases/download/v@VERSION@/penstock-@VERSION@-darwin-amd64.tar.gz"
      sha256 "@darwin-amd64@"
    end
  end
  on_linux do
    on_arm do
      url "https://github.com/penstock/penstock/releases/download/v@VERSION@/penstock-@VERSION@-linux-arm64.tar.gz"
      sha256 "@linux-arm64@"
    end
    on_intel do
      url "https://github.com/penstock/penstock/releases/download/v@VERSION@/penstock-@VERSION@-linux-amd64.tar.gz"
      sha256 "@linux-amd64@"
    end
  end

  def install
    bin.install "penstock"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/penstock.bash" => "penstock"
    zsh_completion.install "completions/penstock.zsh" => "_penstock"
    fish_completion.install "completions/penstock.fish"
  end

  test do
    system bin/"penstock", "demo", "--no-open", testpath/"demo"
  end
end

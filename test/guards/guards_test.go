package guards

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// With any guard taken out, what must notice does: the model finds a schedule
// that loses something, or a test fails.
func TestEveryGuardIsNeeded(t *testing.T) {
	for _, g := range All() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			args := []string{"test", "-overlay", without(t, g), "-count=1", "-run", g.Test}
			if g.Model {
				args = append(args, "-tags", "model", "-v")
			}
			cmd := exec.Command("go", append(args, g.Package)...)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			text := string(out)
			switch {
			case err == nil:
				t.Errorf("nobody notices\n%s", text)
			case strings.Contains(text, "[build failed]") || strings.Contains(text, "no tests to run"):
				t.Errorf("it can't be tried\n%s", text)
			case !strings.Contains(text, g.Finds):
				t.Errorf("want %q in\n%s", g.Finds, text)
			default:
				t.Log(schedule(text))
			}
		})
	}
}

// without makes an overlay of the source without a guard.
func without(t *testing.T, g Guard) string {
	t.Helper()
	texts := map[string]string{}
	for _, c := range g.Cuts {
		path, err := filepath.Abs(filepath.Join(root, c.File))
		if err != nil {
			t.Fatal(err)
		}
		if texts[path] == "" {
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(body)
		}
		if n := strings.Count(texts[path], c.Old); n != 1 {
			t.Fatalf("%s has %d times %q, want it once", c.File, n, c.Old)
		}
		texts[path] = strings.Replace(texts[path], c.Old, c.New, 1)
	}
	overlay, dir := struct{ Replace map[string]string }{map[string]string{}}, t.TempDir()
	for path, text := range texts {
		changed := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[path] = changed
	}
	body, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// schedule is what the model printed of it, or the first failure of a test.
func schedule(out string) string {
	if _, after, ok := strings.Cut(out, "states:\n"); ok {
		lines, _, _ := strings.Cut(after, "=== ")
		return "shortest schedule:\n" + lines
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "_test.go:") {
			return strings.TrimSpace(line)
		}
	}
	return out
}

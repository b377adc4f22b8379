// Looks at the page in a real browser:
//
//   node page.mjs URL FOLDER
//
// The first topic but one is stuck when it begins. Screenshots go to FOLDER. Where
// something has to change, it says what on stdout and waits for a line on stdin.
// It ends with 1 at the first thing that is not as it should be, and says which.
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [base, folder] = process.argv.slice(2);
const axe = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

function must(holds, what) { if (!holds) { throw new Error(what); } }

async function please(what) {
  console.log(what);
  await lines.next();
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: flags });
const faults = [];

async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("pageerror", (e) => faults.push(`script: ${e.message}`));
  page.on("console", (m) => { if (m.type() === "error" && !/ERR_CONNECTION_REFUSED|status of 404/.test(m.text())) { faults.push(`console: ${m.text()}`); } });
  page.on("request", (r) => { if (!r.url().startsWith(base)) { faults.push(`it asks for ${r.url()}`); } });
  return page;
}

// The tool is put in past the page's own policy, which would refuse it.
async function accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  must(found.violations.length === 0, `${what}: ${JSON.stringify(found.violations.map((v) => [v.id, v.nodes.map((n) => [n.html, n.failureSummary])]), null, 1)}`);
  must(found.passes.length > 20, `${what}: only ${found.passes.length} rules were looked at`);
}

async function looks() {
  const pages = [["home", "/"], ["partition", "/partition?topic=payments&n=1"], ["unknown", "/partition?topic=none&n=0"]];
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, viewport] of [["wide", { width: 1360, height: 900 }], ["narrow", { width: 360, height: 800 }]]) {
      const page = await open({ colorScheme, viewport });
      for (const [name, path] of pages) {
        const answer = await page.goto(base + path);
        must(answer.status() === (name === "unknown" ? 404 : 200), `${path}: ${answer.status()}`);
        if (name === "home") { await page.locator("#settings-list summary").click(); }
        await accessible(page, `${name}, ${size}, ${colorScheme}`);
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        must(over <= 0, `${name}, ${size}: ${over} pixels too wide`);
        if (name === "home") { await page.locator("#settings-list summary").click(); }
        await page.evaluate(() => scrollTo(0, 0));
        await page.screenshot({ path: `${folder}/${name}-${size}-${colorScheme}.png`, fullPage: true });
      }
      await page.context().close();
    }
  }
}

async function withoutScript() {
  const page = await open({ javaScriptEnabled: false });
  await page.goto(base);
  must(await page.locator("#updates").count() === 0, "a switch that needs a script is there without one");
  must(await page.locator("table").count() >= 4, "tables are missing without script");
  must(await page.locator("svg.bar[role=img]").count() === 12, "not every partition has its timeline");
  const refresh = await (await page.request.get(base)).text();
  must(refresh.includes('<noscript><meta http-equiv="refresh"'), "nothing refreshes the page without script");
  await page.fill("#q", "pay");
  await page.selectOption("#only", "stuck");
  await page.click("form.filter button");
  await page.waitForURL(/q=pay/);
  must(new URL(page.url()).searchParams.get("q") === "pay", `the filter leads to ${page.url()}`);
  const rows = page.locator("[aria-labelledby=partitions] tbody tr");
  must(await rows.count() === 1 && (await rows.first().textContent()).includes("payments:1"), "the filter does not filter");
  await rows.first().locator("a").click();
  await page.waitForURL(/partition[?]/);
  must((await page.locator("h1").textContent()) === "payments:1", "a partition has no page of its own");
  must(await page.locator("[aria-labelledby=runs] tbody tr").count() >= 4, "the runs are not a table");
  await page.context().close();
}

async function keyboard() {
  const page = await open({ viewport: { width: 1360, height: 900 } });
  await page.goto(base);
  const names = [];
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      if (!e || e === document.body) { return null; }
      const r = e.getBoundingClientRect(), s = getComputedStyle(e);
      return { name: e.id || e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim(), top: r.top + scrollY, seen: r.width > 0 && r.height > 0 && r.bottom > 0 && r.top < innerHeight, ring: s.outlineStyle !== "none" };
    });
    if (!at) { break; }
    must(at.seen && at.ring, `the focus can't be seen at ${at.name}`);
    names.push(at);
  }
  const order = names.map((n) => n.name);
  must(order[0] === "Skip to the content", `the first stop is ${order[0]}`);
  const wanted = ["updates", "see why", "Stuck: source_missing", "topics", "q", "only", "sort", "Show", "partitions"];
  let from = 0;
  for (const name of wanted) {
    const i = order.indexOf(name, from);
    must(i >= 0, `${name} is not reached, or too early: ${order.join(" | ")}`);
    from = i;
  }
  await page.goto(base);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  must(await page.evaluate(() => document.getElementById("main").contains(document.activeElement)), "the skip link skips nothing");
  await page.context().close();
}

async function updates() {
  const page = await open({ viewport: { width: 1360, height: 700 } });
  await page.goto(base);
  await page.evaluate(() => { window.sameDocument = true; });
  must(await page.evaluate(() => document.body.dataset.level) === "bad", "what is lost does not make it bad");
  await page.locator("#settings-list summary").click();
  await page.fill("#q", "half typed");
  await page.focus("#q");
  await page.evaluate(() => scrollTo(0, 400));
  const scrolled = await page.evaluate(() => scrollY);
  const clock = await page.locator("#seen time").textContent();
  await please("mend");
  await page.waitForFunction(() => document.body.dataset.level === "good", null, { timeout: 60000 });
  must(await page.locator("#seen time").textContent() !== clock, "the page's time stands still");
  must(await page.evaluate(() => window.sameDocument), "the page was loaded anew");
  must(await page.inputValue("#q") === "half typed", "what was typed is gone");
  must(await page.evaluate(() => document.activeElement.id) === "q", "the focus is gone");
  must(await page.locator("#settings-list").evaluate((e) => e.open), "what was unfolded is folded");
  must(Math.abs(await page.evaluate(() => scrollY) - scrolled) < 400, "it has scrolled away");
  must((await page.locator("#said").textContent()).startsWith("Healthy"), "nobody was told that it is well again");
  must(await page.locator("#stuck").count() === 0, "what is no longer stuck is still shown");
  await page.screenshot({ path: `${folder}/healthy.png`, fullPage: true });

  await page.click("#updates");
  must(await page.getAttribute("#updates", "aria-pressed") === "true", "the switch does not say that it is on");
  const asked = [];
  page.on("request", (r) => asked.push(r.url()));
  const still = await page.locator("#seen time").textContent();
  await please("wait");
  must(asked.length === 0 && await page.locator("#seen time").textContent() === still, "it goes on although it was told to stop");
  await page.click("#updates");
  await page.waitForFunction((t) => document.querySelector("#seen time").textContent !== t, still, { timeout: 30000 });

  await please("stop");
  await page.waitForSelector("#away:not([hidden])", { timeout: 60000 });
  must((await page.locator("#away").textContent()).includes("old") && await page.evaluate(() => document.body.classList.contains("stale")), "it does not say that what it shows is old");
  await page.screenshot({ path: `${folder}/away.png` });
  await please("start");
  await page.waitForSelector("#away", { state: "hidden", timeout: 60000 });
  await page.context().close();
}

try {
  await looks();
  await withoutScript();
  await keyboard();
  await updates();
  must(faults.length === 0, faults.join("\n"));
  console.log("done");
} catch (e) {
  console.error(e.message);
  process.exitCode = 1;
} finally {
  await browser.close();
  process.stdin.destroy();
}


"use strict";
(async () => {
  const PAGE = 50;
  const TEXTS_SHOWN = 20;
  const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];
  const find = (id) => document.getElementById(id);
  const make = (tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    // Model texts only ever enter the page as text nodes.
    if (text !== undefined) node.textContent = text;
    return node;
  };

  const data = JSON.parse(await inflate(find("data").textContent));
  const start = [];
  let total = 0;
  for (const [, , count] of data.prompts) {
    start.push(total);
    total += count;
  }
  const cut = new Set(data.cut);
  const correct = data.statuses.indexOf("correct");
  let lowered = null;
  let shown = [];
  let rendered = 0;

  async function inflate(base64) {
    const binary = atob(base64);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  }

  function matching(list, text) {
    return Uint8Array.from(list, (entry) => (entry.includes(text) ? 1 : 0));
  }

  function apply() {
    const text = find("text").value.trim().toLowerCase();
    const [status, domain, run] = ["status", "domain", "run"].map((id) => find(id).value);
    let inText = null;
    let inMode = null;
    let inTask = null;
    if (text) {
      lowered ??= {
        texts: data.texts.map((entry) => entry.toLowerCase()),
        modes: data.modes.map((entry) => entry.toLowerCase()),
        tasks: data.tasks.map((task) => (task[0] + "\n" + task[3]).toLowerCase()),
      };
      inText = matching(lowered.texts, text);
      inMode = matching(lowered.modes, text);
      inTask = matching(lowered.tasks, text);
    }
    const sampleFits = (i, taskFits) =>
      (status === "" || data.status[i] === Number(status)) &&
      (!text || taskFits || inText[data.text[i]] === 1 || (data.mode[i] >= 0 && inMode[data.mode[i]] === 1));
    shown = [];
    data.prompts.forEach(([runNumber, taskNumber, count], prompt) => {
      if (run !== "" && runNumber !== Number(run)) return;
      if (domain !== "" && data.tasks[taskNumber][1] !== Number(domain)) return;
      const taskFits = text && inTask[taskNumber] === 1;
      for (let i = start[prompt]; i < start[prompt] + count; i++) {
        if (sampleFits(i, taskFits)) {
          shown.push(prompt);
          return;
        }
      }
    });
    find("count").textContent = shown.length + " of " + data.prompts.length + " prompts";
    find("list").replaceChildren();
    rendered = 0;
    more();
  }

  function more() {
    const next = shown.slice(rendered, rendered + PAGE);
    rendered += next.length;
    find("list").append(...next.map(entry));
    find("more").hidden = rendered >= shown.length;
    find("more").textContent = "Show " + Math.min(PAGE, shown.length - rendered) + " more";
  }

  // Samples of a prompt by status and mode, the most frequent mode first and wrong ones last.
  function groupsOf(prompt) {
    const groups = new Map();
    for (let i = start[prompt]; i < start[prompt] + data.prompts[prompt][2]; i++) {
      const key = data.status[i] + "|" + data.mode[i];
      if (!groups.has(key)) groups.set(key, { status: data.status[i], mode: data.mode[i], samples: [] });
      groups.get(key).samples.push(i);
    }
    return [...groups.values()].sort((a, b) => a.status - b.status || b.samples.length - a.samples.length);
  }

  function colorOf(group, place) {
    return group.status === correct ? COLORS[place % COLORS.length] : null;
  }

  function entry(prompt) {
    const [run, taskNumber, count] = data.prompts[prompt];
    const task = data.tasks[taskNumber];
    const groups = groupsOf(prompt);
    const right = groups.filter((group) => group.status === correct);
    const details = make("details");
    const summary = make("summary");
    const bar = make("span", "bar");
    groups.forEach((group, place) => {
      const part = make("i", group.status === correct ? "" : data.statuses[group.status]);
      part.style.width = (100 * group.samples.length) / count + "%";
      if (group.status === correct) part.style.background = colorOf(group, place);
      bar.append(part);
    });
    const answers = right.reduce((sum, group) => sum + group.samples.length, 0);
    const existing = task[4] === null ? "" : " of " + task[4];
    const facts = answers + "/" + count + " correct, " + right.length + existing + " modes";
    const label = data.runs.length > 1 ? data.runs[run] : "";
    summary.append(make("span", "id", task[0]), make("span", "facts", label), make("span", "facts", facts), bar);
    details.append(summary);
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(content(task, groups));
    });
    return details;
  }

  function content(task, groups) {
    const open = make("div", "open");
    open.append(make("h3", "", "Problem"), make("pre", "", task[3]));
    const wanted = find("status").value;
    groups.forEach((group, place) => {
      if (wanted !== "" && group.status !== Number(wanted)) return;
      const status = data.statuses[group.status];
      const box = make("div", "group " + (group.status === correct ? "" : status));
      const color = colorOf(group, place);
      if (color) box.style.borderColor = color;
      const title = make("h3", "", group.samples.length + " × " + status + " ");
      if (group.mode >= 0) title.append(make("code", "", data.modes[group.mode]));
      box.append(title, ...texts(group));
      open.append(box);
    });
    return open;
  }

  function texts(group) {
    const times = new Map();
    for (const i of group.samples) {
      const key = data.text[i] + "|" + data.detail[i] + "|" + cut.has(i);
      if (!times.has(key)) times.set(key, { sample: i, count: 0 });
      times.get(key).count += 1;
    }
    const distinct = [...times.values()].sort((a, b) => b.count - a.count);
    const nodes = distinct.slice(0, TEXTS_SHOWN).flatMap(({ sample, count }) => {
      const facts = [];
      if (count > 1 && distinct.length > 1) facts.push(count + " times");
      if (cut.has(sample)) facts.push("cut at the token limit");
      if (data.detail[sample] >= 0) facts.push(data.details[data.detail[sample]]);
      const text = make("pre", "", data.text[sample] < 0 ? "(no text recorded)" : data.texts[data.text[sample]]);
      return facts.length ? [make("div", "times", facts.join(" · ")), text] : [text];
    });
    if (distinct.length > TEXTS_SHOWN) {
      nodes.push(make("div", "times", "and " + (distinct.length - TEXTS_SHOWN) + " more different texts"));
    }
    return nodes;
  }

  function choices(id, names) {
    names.forEach((name, number) => {
      const option = make("option", "", name);
      option.value = String(number);
      find(id).append(option);
    });
    if (names.length < 2) find(id).parentElement.hidden = true;
  }

  choices("status", data.statuses);
  choices("domain", data.domains);
  choices("run", data.runs);
  let waiting = 0;
  find("text").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 150);
  });
  for (const id of ["status", "domain", "run"]) find(id).addEventListener("change", apply);
  find("filter").addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  find("more").addEventListener("click", more);
  apply();
  document.documentElement.dataset.milliseconds = String(Math.round(performance.now()));
  document.documentElement.dataset.ready = "true";
})();

// Measures the scanner of definitions: its recall on corpora of attacks, and its false alarms on ordinary tools.
//   node --import tsx bench/definition-scan.ts <folder with the corpora>
// The folder has, as their repositories have them: detect_corpus_v1.json (smart-mcp-proxy/mcpproxy-go),
// mcp-scanner/ with evals and examples (cisco-ai-defense/mcp-scanner), damn-vulnerable-MCP-server/ with challenges
// (harishsg993010/damn-vulnerable-MCP-server). What is missing is left out. --all prints each definition.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { argv } from 'node:process'
import { lookalikeKey, normalizeName } from '../plugins/extensions/pins/lookalike-names.ts'
import { scanDefinitions } from '../plugins/extensions/pins/scan/scan.ts'

interface Sample {
  readonly group: string
  readonly server: string
  readonly kind: string
  readonly item: string
  readonly text: string
  /** The names of other servers' tools. */
  readonly peers?: readonly string[]
}

const [folder = '.'] = argv.slice(2).filter((each) => !each.startsWith('--'))
const isVerbose = argv.includes('--all')

/** The decorated functions of a Python server: their names, and their docstrings as descriptions. */
function pythonDefinitions (path: string, group: string): Sample[] {
  const source = readFileSync(path, 'utf8')
  const decorated = /@\w+\.(tool|prompt)\(([^)]*)\)\s*(?:async\s+)?def\s+(\w+)\s*\([^)]*\)[^:]*:\s*(?:r?"""([\s\S]*?)""")?/g
  // A server that gives a function another docstring while it runs.
  const replaced = [...source.matchAll(/(\w+)\.__doc__\s*=\s*(?:"""([\s\S]*?)"""|'''([\s\S]*?)''')/g)]
    .map(([, item = '', one, other]) =>
      ({ group, server: path, kind: 'tool', item, text: JSON.stringify({ name: item, description: one ?? other }) }))
  return [...replaced, ...[...source.matchAll(decorated)].map(([, kind = 'tool', options = '', item = '', docs = '']) => {
    const given = /description\s*=\s*(?:"""([\s\S]*?)"""|"([^"]*)")/.exec(options)
    const description = (given?.[1] ?? given?.[2] ?? docs).trim()
    return { group, server: path, kind, item, text: JSON.stringify({ name: item, description }) }
  })]
}

function pythonFolder (name: string, group: string, isWanted = /\.py$/): Sample[] {
  const path = join(folder, name)
  if (!existsSync(path)) return []
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((each) => isWanted.test(each)).sort()
  return files.flatMap((file) => pythonDefinitions(join(path, file), group))
}

interface Named { name: string }
interface LabelledTool { label: string, category: string, server: string, tool: Named, peers?: Array<{ tool: Named }> }

function labelled (): Sample[] {
  const path = join(folder, 'detect_corpus_v1.json')
  if (!existsSync(path)) return []
  const { entries } = JSON.parse(readFileSync(path, 'utf8')) as { entries: LabelledTool[] }
  return entries.map(({ label, category, server, tool, peers = [] }) => ({
    group: `detect_corpus_v1, ${label === 'malicious' ? category : label === 'benign' ? `benign (${category})` : label}`,
    server,
    kind: 'tool',
    item: tool.name,
    text: JSON.stringify(tool),
    peers: peers.map((peer) => peer.tool.name)
  }))
}

/** The tool definitions of real servers that the search is measured with. */
function realTools (file: string): Sample[] {
  const { servers } = JSON.parse(readFileSync(new URL(`search/${file}`, import.meta.url), 'utf8')) as
    { servers: Array<{ name: string, tools: Array<{ name: string }> }> }
  return servers.flatMap(({ name: server, tools }) =>
    tools.map((tool) => ({ group: `real servers (bench/search/${file})`, server, kind: 'tool', item: tool.name, text: JSON.stringify(tool) })))
}

const samples = [
  ...labelled(),
  ...pythonFolder('mcp-scanner/evals/behavioral-analysis/data/tool-poisoning', 'mcp-scanner, tool-poisoning'),
  ...pythonFolder('mcp-scanner/evals/behavioral-analysis/data/prompt-injection', 'mcp-scanner, prompt-injection'),
  ...pythonFolder('mcp-scanner/evals/remote/malicious', 'mcp-scanner, remote malicious'),
  ...pythonFolder('mcp-scanner/examples/example-malicious-servers', 'mcp-scanner, example servers'),
  ...pythonFolder('mcp-scanner/evals/remote/benign', 'mcp-scanner, remote benign'),
  ...pythonFolder('damn-vulnerable-MCP-server/challenges', 'damn-vulnerable-MCP-server', /server\.py$/),
  ...realTools('tools.json'),
  ...realTools('tools-of-others.json')
]

const groups = new Map<string, { count: number, flagged: number, messages: Map<string, number> }>()
for (const sample of samples) {
  const row = groups.get(sample.group) ?? { count: 0, flagged: 0, messages: new Map<string, number>() }
  groups.set(sample.group, row)
  const { findings: found, names } = scanDefinitions([sample])
  const { peers = [] } = sample
  const shadows = names.filter(({ name }) => peers.includes(name)).map((each) => ({ ...each, message: 'it asks the model to call a tool of another server' }))
  const alike = peers.some((peer) => normalizeName(peer) !== normalizeName(sample.item) && lookalikeKey(peer) === lookalikeKey(sample.item))
  const findings = [...found, ...shadows, ...alike ? [{ place: '/name', message: 'its name resembles a tool of another server' }] : []]
  row.count++
  if (findings.length > 0) row.flagged++
  for (const message of new Set(findings.map((each) => each.message.replace(/[:(].*/, '')))) row.messages.set(message, (row.messages.get(message) ?? 0) + 1)
  if (isVerbose) console.log(`${findings.length > 0 ? 'X' : '-'} ${sample.group} | ${sample.server.split('/').at(-1)} ${sample.item} | ${findings.map(({ place, message }) => `${place}: ${message}`).join(' ; ') || sample.text.slice(0, 200)}`)
}
for (const [group, { count, flagged, messages }] of groups) {
  console.log(`${group}: ${flagged} of ${count} (${(100 * flagged / count).toFixed(1)} %)`)
  for (const [message, times] of messages) console.log(`    ${times} × ${message}`)
}

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { StrategyName } from '../../plugins/extensions/compression/strategies/strategy.ts'

/** What an agent may want to know of a text, and what must still be in it then. */
export interface Asked { readonly question: string, readonly answer: string | RegExp }
/** A real output of a tool. `kind`: the strategy that fits. */
export interface Input { readonly name: string, readonly kind: StrategyName, readonly text: string, readonly asked: readonly Asked[] }

const project = fileURLToPath(new URL('../../', import.meta.url))
const zod = 'node_modules/zod/v4'

/** What a command writes, whether it succeeds or not: a diff, a search and a failed build do not. */
function outputOf (command: string, args: readonly string[], cwd = project): string {
  const { stdout, error } = spawnSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024, stdio: ['ignore', 'pipe', 'ignore'] })
  if (error) throw error
  return stdout
}

/** The item in the middle: what stands there is the first to be left out. */
const middle = <T>(list: readonly T[]): T | undefined => list[Math.floor(list.length / 2)]
const exactly = (text: string | undefined): RegExp => new RegExp(`(?<!\\w)${(text ?? '').replace(/[^\w\s]/g, '\\$&')}(?!\\w)`)

/** Outputs of npm, git, grep and the compiler over what is installed, and a real server's answer. @param folder for files of its own */
export function readInputs (folder: string): Input[] {
  return [build(folder), packages(), toolList(), search(), diff(), manual()]
}

/** A verbose build that fails at the end: the compiler tells how it looked for each module. */
function build (folder: string): Input {
  writeFileSync(join(folder, 'entry.ts'), [
    `import fastify from ${JSON.stringify(join(project, 'node_modules/fastify/fastify.js'))}`,
    'import missing from \'./missing-module.js\'',
    'missing(fastify)'
  ].join('\n'))
  const text = outputOf(process.execPath, [
    join(project, 'node_modules/typescript/bin/tsc'), '--traceResolution', '--noEmit', '--skipLibCheck', '--module', 'nodenext', 'entry.ts'
  ], folder)
  return {
    name: 'a failing build (tsc --traceResolution)',
    kind: 'log',
    text,
    asked: [
      { question: 'Did it fail, and with which error?', answer: /error TS\d+/ },
      { question: 'Which module is missing?', answer: /error.*missing-module/ },
      { question: 'In which file and line is it imported?', answer: /entry\.ts[(:]2\b/ },
      { question: 'Which module was looked for first?', answer: 'fastify.js' }
    ]
  }
}

function packages (): Input {
  const text = outputOf('npm', ['ls', '--all', '--json'])
  const { name, dependencies = {} } = JSON.parse(text) as {
    name: string
    dependencies?: Record<string, { version: string }>
  }
  const entries = Object.entries(dependencies)
  const version = (at: number): RegExp => new RegExp(`"${entries.at(at)?.[0]}":\\s*\\{\\s*"version":\\s*"${entries.at(at)?.[1].version}"`)
  return {
    name: 'installed packages (npm ls --all --json)',
    kind: 'json',
    text,
    asked: [
      { question: 'Whose dependencies are these?', answer: `"${name}"` },
      { question: 'Which version has the first of them?', answer: version(0) },
      { question: 'Which version has the one in the middle?', answer: version(Math.floor(entries.length / 2)) },
      { question: 'Is the last one among them?', answer: exactly(entries.at(-1)?.[0]) }
    ]
  }
}

function toolList (): Input {
  const { servers } = JSON.parse(readFileSync(new URL('../search/tools.json', import.meta.url), 'utf8')) as {
    servers: Array<{ tools: Array<{ name: string }> }>
  }
  const tools = servers.map(({ tools }) => tools).sort((a, b) => b.length - a.length)[0] ?? []
  return {
    name: `a server's answer to tools/list, ${tools.length} tools`,
    kind: 'json',
    text: JSON.stringify({ tools }),
    asked: [
      { question: 'How many are there?', answer: exactly(`${tools.length}`) },
      { question: 'Which members has each?', answer: /name\??: string/ },
      { question: 'What is the first one called?', answer: exactly(tools[0]?.name) },
      { question: 'What is the last one called?', answer: exactly(tools.at(-1)?.name) },
      { question: 'What is the one in the middle called?', answer: exactly(middle(tools)?.name) }
    ]
  }
}

function search (): Input {
  const text = outputOf('grep', ['-rn', 'export', `${zod}/classic`, `${zod}/core`, '--include=*.ts'])
  const lines = text.trimEnd().split('\n')
  const files = [...new Set(lines.map((line) => line.split(':')[0] ?? ''))]
  return {
    name: 'a search (grep -rn export)',
    kind: 'search',
    text,
    asked: [
      { question: 'How many hits are there?', answer: exactly(lines.length.toLocaleString('en-US')) },
      { question: 'In how many files?', answer: exactly(`${files.length} files`) },
      { question: 'Which file comes first?', answer: files[0] ?? '' },
      { question: 'Which file is in the middle?', answer: middle(files) ?? '' },
      { question: 'Which file comes last?', answer: files.at(-1) ?? '' },
      { question: 'What is the hit in the middle?', answer: middle(lines)?.split(':').slice(2).join(':').trim() ?? '' }
    ]
  }
}

function diff (): Input {
  const text = outputOf('git', ['diff', '--no-index', '--no-color', `${zod}/classic`, `${zod}/mini`])
  const files = [...text.matchAll(/^diff --git .* b\/(.*)$/gm)].map(([, path = '']) => path)
  const removed = text.split('\n').filter((line) => /^-\w/.test(line))
  return {
    name: 'a diff (git diff --no-index)',
    kind: 'diff',
    text,
    asked: [
      { question: 'How many files have changed?', answer: exactly(`${files.length} files`) },
      { question: 'Is the first file among them?', answer: files[0] ?? '' },
      { question: 'Is the one in the middle?', answer: middle(files) ?? '' },
      { question: 'Is the last one?', answer: files.at(-1) ?? '' },
      { question: 'Which line was removed first?', answer: removed[0] ?? '' },
      { question: 'Which line in the middle was removed?', answer: middle(removed) ?? '' }
    ]
  }
}

/** The longest page of the manual of Fastify, whose package has it. */
function manual (): Input {
  const folder = join(project, 'node_modules/fastify/docs/Reference')
  const [text = ''] = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8')).sort((a, b) => b.length - a.length)
  const headings = [...text.matchAll(/^#{1,4} (.+)$/gm)].map(([line]) => line)
  return {
    name: 'a page of a manual',
    kind: 'text',
    text,
    asked: [
      { question: 'What is it about?', answer: headings[0] ?? '' },
      { question: 'What is its last section?', answer: headings.at(-1) ?? '' },
      { question: 'Which section is in the middle?', answer: middle(headings) ?? '' }
    ]
  }
}

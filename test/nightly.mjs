// `npm run nightly`: what a change need not wait for, and what an issue needs before it is called resolved. It runs measure/ (alone, medians of
// five rounds), nightly/ (what takes minutes), soak/, and the whole of CI once on Node 24, then writes test/NIGHTLY.md.
// `--age` only tells how old that page is. `--only=measure,nightly,soak,node24` runs some of it, and words the files with one in their path.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runProcess } from './runner/process.mjs'

const cwd = fileURLToPath(new URL('../', import.meta.url))
const page = `${cwd}test/NIGHTLY.md`

if (process.argv.includes('--age')) {
  const date = existsSync(page) ? /^Date: (\S+)/m.exec(readFileSync(page, 'utf8'))?.[1] : undefined
  console.log(date === undefined ? 'no nightly run is recorded' : `the last nightly run is of ${date.slice(0, 10)}, ${Math.floor((Date.now() - Date.parse(date)) / 86_400_000)} days old`)
  process.exit()
}

const words = process.argv.slice(2).filter((arg) => !arg.startsWith('--'))
const only = process.argv.find((arg) => arg.startsWith('--only='))?.slice('--only='.length).split(',')

/** The folder of Node 24, from npm, in a cache: never a dependency. */
function node24 () {
  const folder = `${cwd}.cache/node24`
  if (!existsSync(`${folder}/node_modules/node/bin/node`)) {
    mkdirSync(folder, { recursive: true })
    execFileSync('npm', ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', 'node@24'], { stdio: 'inherit' })
  }
  return `${folder}/node_modules/node/bin`
}

const hours = 3_600_000
const parts = {
  measure: () => ({ args: ['test/run.mjs', '--measure'] }),
  nightly: () => ({ args: ['test/run.mjs', '--nightly'] }),
  soak: () => ({ args: ['test/run.mjs', '--soak'] }),
  node24: () => ({ args: ['test/run.mjs', '--ci'], bin: node24(), env: { TEST_IMAGE: '0' } })
}

const rows = []
for (const [name, part] of Object.entries(parts).filter(([name]) => only === undefined || only.includes(name))) {
  console.log(`── ${name}`)
  const begun = Date.now()
  const { args, bin, env = {} } = part()
  let output = ''
  const { code, ended } = await runProcess(bin === undefined ? process.execPath : `${bin}/node`, [...args, ...words], {
    cwd,
    env: { ...env, ...bin === undefined ? {} : { PATH: `${bin}${delimiter}${process.env.PATH}` } },
    silence: 2 * hours,
    limit: 12 * hours,
    onOutput: (text) => { process.stdout.write(text); output = (output + text).slice(-1_000_000) }
  })
  const lines = output.split('\n')
  const closing = lines.findLast((line) => /^\d+ passed, \d+ failed$/.test(line)) ?? (ended ?? `exit code ${code}`)
  const whatFailed = lines.indexOf('What failed:')
  const failures = whatFailed === -1 ? [] : lines.slice(whatFailed).filter((line) => /^✖ /.test(line))
  rows.push({ name, closing, minutes: Math.round((Date.now() - begun) / 60_000), failures: [...failures, ...lines.filter((line) => /^FLAKY /.test(line))] })
}

const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd, encoding: 'utf8' }).trim()
writeFileSync(page, `# The last nightly run

Written by \`npm run nightly\` (test/nightly.mjs).

Commit: ${commit}
Date: ${new Date().toISOString()}
Node: ${process.version}

| part | result | minutes |
| --- | --- | --- |
${rows.map(({ name, closing, minutes }) => `| ${name} | ${closing} | ${minutes} |`).join('\n')}

${rows.flatMap(({ name, failures }) => failures.map((line) => `- ${name}: ${line}`)).join('\n') || 'Nothing failed.'}
`)
console.log('written: test/NIGHTLY.md')
process.exitCode = rows.every(({ closing }) => / 0 failed$/.test(closing)) ? 0 : 1

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { envTable, tableIn } from '../../docs/env-table.ts'
import { limitsPage } from '../../docs/limits-page.ts'
import { sendRpcError } from '../../plugins/base/errors/handlers.ts'
import { errors } from '../../plugins/base/errors/list.ts'
import { rpcCode } from '../../protocol/errors.ts'
import { Env } from '../../schemas/env.ts'
import { parseTimerDuration } from '../../schemas/durations.ts'
import { path } from '../helpers/hub.ts'

const read = (name: string): string => readFileSync(path(name), 'utf8')

/** The body rows of the table below a heading, as cells. */
const rowsBelow = (text: string, heading: string): string[][] => {
  const section = text.slice(text.indexOf(`\n## ${heading}\n`)).split('\n## ')[1] ?? ''
  return section.split('\n').filter((line) => line.startsWith('|')).slice(2)
    .map((line) => line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim()))
}

test('durations of the environment are within the range of a timer', async () => {
  for (const [text, ms] of [
    ['500', 500], ['500ms', 500], ['5s', 5_000], ['10m', 600_000], ['24h', 86_400_000], ['0', 1], ['50d', 2 ** 31 - 1],
    ['99999999s', 2 ** 31 - 1]
  ] as const) { assert.equal(parseTimerDuration(text), ms, text) }
})

/** An error whose message keeps its placeholders. An error with `Retry-After` needs an argument. */
function unfilled (Made: (typeof errors)[keyof typeof errors]): FastifyError {
  const Any = Made as new (...args: unknown[]) => FastifyError
  return Any.length === 0 ? new Any() : new Any('%s')
}

test('docs/errors.md', async (t) => {
  const text = read('docs/errors.md')
  const rows = rowsBelow(text, 'HTTP errors')
  const made = Object.values(errors).map(unfilled)

  await t.test('lists exactly the errors of plugins/base/errors/list.ts, with status and message', async () => {
    assert.ok(made.length > 0)
    assert.deepEqual(rows.map(([name, status, , message]) => [name, status, message]),
      made.map((error) => [error.code, String(error.statusCode), error.message.replaceAll('%s', '…')]))
  })

  await t.test('gives the JSON-RPC code that the MCP endpoints answer with', async () => {
    for (const error of made) {
      let body = ''
      const reply = {
        hasHeader: () => false,
        type: () => reply,
        code: () => reply,
        header: () => reply,
        send: (sent: string) => { body = sent; return reply }
      }
      sendRpcError(error, { raw: {}, log: { error: () => {} } } as unknown as FastifyRequest, reply as unknown as FastifyReply)
      const stated = rows.find(([name]) => name === error.code)?.[2]
      const { error: answered } = JSON.parse(body) as { error: string | { code: number } }
      assert.ok(stated === '–' || (typeof answered === 'object' && stated === String(answered.code)),
        `${error.code}: ${stated}, answered ${body}`)
    }
  })

  await t.test('has a remedy for each', async () => {
    for (const row of rows) { assert.equal(row.length, 5, row[0]); assert.ok((row[4]?.length ?? 0) > 10, row[0]) }
  })

  await t.test('lists every JSON-RPC code that the gateway makes', async () => {
    assert.deepEqual(rowsBelow(text, 'JSON-RPC errors').map(([number]) => Number(number)).sort((a, b) => a - b),
      Object.values(rpcCode).sort((a, b) => a - b))
  })

  await t.test('codes are unique and made of the names in the list', async () => {
    assert.equal(new Set(made.map((error) => error.code)).size, made.length)
    for (const [name, Made] of Object.entries(errors)) {
      assert.equal(unfilled(Made).code, `TH_${name.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase()}`)
    }
  })
})

test('dependencies', async (t) => {
  const manifest = JSON.parse(read('package.json')) as {
    dependencies: Record<string, string>
    devDependencies: Record<string, string>
    optionalDependencies: Record<string, string>
    engines: { node: string }
  }
  const text = read('docs/dependencies.md')

  for (const [heading, group] of [
    ['At run time', { ...manifest.dependencies, ...manifest.optionalDependencies }],
    ['For development', manifest.devDependencies]
  ] as const) {
    await t.test(`${heading.toLowerCase()}: each has a sentence in docs/dependencies.md, and no other package has`, async () => {
      const section = text.slice(text.indexOf(`\n## ${heading}\n`)).split('\n## ')[1] ?? ''
      const said = new Map(
        [...section.matchAll(/^- \*\*(.+?)\*\*: (.+)$/gm)].map(([, name = '', sentence = '']): [string, string] => [name, sentence])
      )
      assert.deepEqual([...said.keys()].sort(), Object.keys(group).sort())
      for (const [name, sentence] of said) assert.ok(sentence.length > 40 && sentence.endsWith('.'), name)
    })
  }

  await t.test('package-lock.json names no host, and has a hash for each package', async () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { resolved?: string; integrity?: string; link?: boolean; inBundle?: boolean }>
    }
    for (const [name, entry] of Object.entries(packages)) {
      assert.equal(entry.resolved, undefined, name)
      if (name !== '' && entry.link !== true && entry.inBundle !== true) assert.match(entry.integrity ?? '', /^sha(512|1)-/, name)
    }
  })

  await t.test('package-lock.json has the dependencies of package.json', async () => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Partial<typeof manifest>> }
    assert.deepEqual(packages['']?.dependencies, manifest.dependencies)
    assert.deepEqual(packages['']?.devDependencies, manifest.devDependencies)
  })
})

test('docs/configuration.md: its table of environment variables is that of schemas/env.ts', async () => {
  assert.equal(tableIn(read('docs/configuration.md')), envTable(), 'write it anew: node --import tsx docs/env-table.ts --write')
  assert.equal(read('docs/limits.md'), limitsPage(), 'write it anew: node --import tsx docs/limits-page.ts --write')
})

test('README.md has at most 150 lines and 8 KB, docs/architecture.md and docs/lifecycle.md at most 8 KB each', async () => {
  assert.ok(read('README.md').split('\n').length <= 151)
  for (const name of ['README.md', 'docs/architecture.md', 'docs/lifecycle.md']) {
    assert.ok(Buffer.byteLength(read(name)) <= 8 * 1024, name)
  }
})

/** The documents, by their paths in the project. */
const documents = [
  'README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'bench/RESULTS.md', 'test/README.md',
  ...readdirSync(path('docs')).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)
]

/** The anchors of a document, as GitHub makes them of its headings. */
const anchorsOf = (text: string): Set<string> => new Set(
  [...text.replace(/^```.*?^```$/gms, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-'))
)

test('every link of a document leads to a file, and to a heading of it', async () => {
  let count = 0
  for (const name of documents) {
    const text = read(name).replace(/^```.*?^```$/gms, '')
    for (const [, target = '', anchor] of text.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g)) {
      const file = target === '' ? name : join(dirname(name), target)
      count += 1
      assert.ok(existsSync(path(file)), `${name} links to ${target}`)
      if (anchor !== undefined) assert.ok(anchorsOf(read(file)).has(anchor), `${name} links to ${target}#${anchor}`)
    }
  }
  assert.ok(count > 50)
})

test('README.md links to every page of docs/', async () => {
  const text = read('README.md')
  assert.deepEqual(documents.filter((name) => name.startsWith('docs/') && !text.includes(`(${name})`)), [])
})

test('schemas/env.ts: every variable has a description', async () => {
  for (const [name, schema] of Object.entries(Env.properties)) {
    assert.match(name, /^[A-Z][A-Z0-9_]*$/)
    assert.ok((schema.description ?? '').length > 5, name)
    assert.ok(envTable().includes(`| \`${name}\` |`), name)
  }
})

test('the proxy examples set the forwarded headers themselves', async () => {
  for (const name of ['nginx.conf', 'nginx-replicas.conf']) {
    const text = read(`examples/${name}`)
    for (const header of ['X-Forwarded-For $remote_addr', 'X-Forwarded-Proto $scheme', 'X-Forwarded-Host $host']) {
      assert.ok(text.includes(`proxy_set_header ${header};`), `${name}: ${header}`)
    }
    assert.match(text, /TRUST_PROXY=127\.0\.0\.1/)
  }
})

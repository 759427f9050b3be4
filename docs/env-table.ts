// The README's table of environment variables, from the schema that reads them: `node --import tsx docs/env-table.ts` prints it,
// with `--write` it goes into the README.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { TSchema } from '@sinclair/typebox'
import { Env } from '../schemas/env.ts'

const begin = '<!-- env -->'
const end = '<!-- /env -->'
const readme = new URL('../README.md', import.meta.url)

/** A value in code, or a dash for none. */
const shown = (value: unknown): string => value === undefined || value === '' ? '–' : `\`${String(value)}\``
const cell = (text: string): string => text.replaceAll('|', '\\|')

/** One row for each variable, in the order of the schema. */
export function envTable (): string {
  const rows = Object.entries<TSchema>(Env.properties).map(([name, schema]) => {
    const description = `${schema.description ?? ''}${schema.secret === true ? `. Or \`${name}_FILE\`: the file that holds it` : ''}`
    return `| \`${name}\` | ${cell(shown(schema.default))} | ${cell(description)} |`
  })
  return ['| variable | default | what it is |', '| --- | --- | --- |', ...rows].join('\n')
}

/** Where the table stands in a document: just past the first mark, and just before the second. @throws Error when they are not there */
function place (text: string): [from: number, to: number] {
  const from = text.indexOf(begin) + begin.length
  const to = text.indexOf(end)
  if (from < begin.length || to < from) throw new Error(`The document lacks ${begin} … ${end}`)
  return [from, to]
}

/** The table that a document shows. */
export const tableIn = (text: string): string => text.slice(...place(text)).trim()

/** The document with the table as it should be. */
export function withTable (text: string): string {
  const [from, to] = place(text)
  return `${text.slice(0, from)}\n${envTable()}\n${text.slice(to)}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.includes('--write')) writeFileSync(readme, withTable(readFileSync(readme, 'utf8')))
  else console.log(envTable())
}

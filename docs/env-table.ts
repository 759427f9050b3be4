// The table of environment variables, from the schema that reads them: `node --import tsx docs/env-table.ts` prints it,
// and `--write` writes it into configuration.md.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { TSchema } from '@sinclair/typebox'
import { Env } from '../schemas/env.ts'

const begin = '<!-- env -->'
const end = '<!-- /env -->'
const page = new URL('configuration.md', import.meta.url)

/** A value as code, or a dash. */
const shown = (value: unknown): string => value === undefined || value === '' ? '–' : `\`${String(value)}\``
const cell = (text: string): string => text.replaceAll('|', '\\|')

/** The table with one row for each variable, in the order of the schema. */
export function envTable (): string {
  const rows = Object.entries<TSchema>(Env.properties).map(([name, schema]) => {
    const description =
      `${schema.description ?? ''}${schema.secret === true ? `. Or \`${name}_FILE\`: a file that contains it` : ''}`
    return `| \`${name}\` | ${cell(shown(schema.default))} | ${cell(description)} |`
  })
  return ['| variable | default | meaning |', '| --- | --- | --- |', ...rows].join('\n')
}

/** The offsets of the table in a document, between the two marks. @throws Error when a mark is missing */
function place (text: string): [from: number, to: number] {
  const from = text.indexOf(begin) + begin.length
  const to = text.indexOf(end)
  if (from < begin.length || to < from) throw new Error(`The document lacks ${begin} … ${end}`)
  return [from, to]
}

/** The table in a document. */
export const tableIn = (text: string): string => text.slice(...place(text)).trim()

/** The document with the current table. */
export function withTable (text: string): string {
  const [from, to] = place(text)
  return `${text.slice(0, from)}\n${envTable()}\n${text.slice(to)}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.includes('--write')) writeFileSync(page, withTable(readFileSync(page, 'utf8')))
  else console.log(envTable())
}

// The tables of docs/limits.md, from the limits.ts of each wing: `node --import tsx docs/limits-page.ts` prints the
// page, with `--write` it goes into the file.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const project = new URL('../', import.meta.url)
const page = new URL('limits.md', import.meta.url)

/** The wings in the order of their registration, with the file of their bounds. */
const wings: ReadonlyArray<readonly [title: string, file: string]> = [
  ['Requests and memory', 'plugins/base/limits/limits.ts'],
  ['Settings', 'plugins/settings/limits.ts'],
  ['Users, keys and logins', 'plugins/identity/limits.ts'],
  ['Gateway', 'plugins/gateway/limits.ts'],
  ['Servers', 'plugins/upstream/limits.ts'],
  ['Clients', 'plugins/downstream/limits.ts'],
  ['Compression, search, activities and logs', 'plugins/extensions/limits.ts'],
  ['Management API', 'plugins/management/limits.ts']
]

const begin = '<!-- limits -->'
const end = '<!-- /limits -->'

const cell = (text: string): string => text.replaceAll('|', '\\|').replace(/\s+/g, ' ').trim()

/** The sentences of a JSDoc comment. */
const sentencesOf = (comment: string): string =>
  comment.replace(/^\/\*\*/, '').replace(/\*\/$/, '').split('\n').map((line) => line.replace(/^\s*\* ?/, '')).join(' ')

/** The default of a bound; of several that are described together, one on each line. */
function defaultsOf (value: ts.Expression, source: ts.SourceFile): string {
  const parts = ts.isObjectLiteralExpression(value) && value.properties.length > 1 ? [...value.properties] : [value]
  return parts.map((part) => `\`${cell(part.getText(source))}\``).join('<br>')
}

/** Rows of the bounds in an object; those of an object with comments within come one by one. */
function rowsOf (object: ts.ObjectLiteralExpression, source: ts.SourceFile, prefix = '', comment = ''): string[] {
  return object.properties.flatMap((property) => {
    if (!ts.isPropertyAssignment(property)) return []
    const text = source.getFullText()
    const own = ts.getLeadingCommentRanges(text, property.getFullStart())?.at(-1)
    comment = own ? sentencesOf(text.slice(own.pos, own.end)) : comment
    const name = `${prefix}${property.name.getText(source)}`
    const value = property.initializer
    const inner = ts.isObjectLiteralExpression(value) && value.properties.some((each) =>
      (ts.getLeadingCommentRanges(text, each.getFullStart()) ?? []).length > 0)
    if (inner) return rowsOf(value, source, `${name}.`, comment)
    return [`| \`${name}\` | ${defaultsOf(value, source)} | ${cell(comment).replaceAll('. `', '.<br>`')} |`]
  })
}

/** The tables of all wings, as they should stand between the two marks of the page. */
function tables (): string {
  const parts = wings.map(([title, file]) => {
    const source = ts.createSourceFile(file, readFileSync(new URL(file, project), 'utf8'), ts.ScriptTarget.Latest, true)
    const rows = source.statements.flatMap((statement) => {
      if (!ts.isVariableStatement(statement)) return []
      return statement.declarationList.declarations.flatMap(({ initializer }) => {
        const object = initializer && ts.isAsExpression(initializer) ? initializer.expression : initializer
        return object && ts.isObjectLiteralExpression(object) ? rowsOf(object, source) : []
      })
    })
    return `## ${title}\n\n| bound | default | meaning, and what happens beyond |\n| --- | --- | --- ` +
      `|\n${rows.join('\n')}\n`
  })
  return parts.join('\n')
}

/** The page with its tables as they should be. @throws Error when the marks are not there */
export function limitsPage (text = readFileSync(page, 'utf8')): string {
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
  if (from < begin.length || to < from) throw new Error(`docs/limits.md lacks ${begin} … ${end}`)
  return `${text.slice(0, from)}\n\n${tables()}\n${text.slice(to)}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.includes('--write')) writeFileSync(page, limitsPage())
  else console.log(limitsPage())
}

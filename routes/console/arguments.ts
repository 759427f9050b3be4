import type { FastifyInstance } from 'fastify'
import { argumentsIn, type Form, objectIn, textOf } from './page.ts'

/** The content of a form for arguments. `args`: JSON text, if the form was submitted to call something with them. */
export interface ArgumentsForm {
  readonly mode: 'form' | 'json'
  readonly json: string
  readonly values: Readonly<Record<string, string>>
  readonly errors: Readonly<Record<string, string>>
  readonly args?: string | undefined
}

/** Reads a submitted form for arguments. @param schema the schema of the arguments */
export function argumentsOf (app: FastifyInstance, sent: Form, schema: unknown): ArgumentsForm {
  const form = app.kit.formOf(schema)
  const mode = textOf(sent.mode) === 'json' ? 'json' : 'form'
  const what = textOf(sent.do)
  const values = argumentsIn(sent)
  const text = textOf(sent.json)
  if (mode === 'json') {
    const args = objectIn(text, 'Arguments are')
    if (typeof args === 'string') return { mode, json: text, values, errors: { json: args } }
    return what === 'form'
      ? { mode: 'form', json: text, values: form.draft(args), errors: {} }
      : { mode, json: text, values, errors: {}, args: text.trim() === '' ? '{}' : text }
  }
  if (/^(?:add|remove|choose):/.test(what)) return { mode, json: '', values: form.change(values, what), errors: {} }
  const read = form.read(values)
  if ('errors' in read) return { mode, json: '', values, errors: read.errors }
  return what === 'json'
    ? { mode: 'json', json: JSON.stringify(JSON.parse(read.json), undefined, 2), values, errors: {} }
    : { mode, json: '', values, errors: {}, args: read.json }
}

import type { FastifyInstance } from 'fastify'
import { exactDraftOf, formatJson } from '../../plugins/management/index.ts'
import { argumentFieldsIn, type SubmittedForm, parseJsonObjectOrProblem, formFieldText } from './page.ts'

/**
 * The content of a submitted form for the arguments of a call, which the user fills in as fields (`values`) or as JSON
 * (`json`). `args`: the arguments as JSON text; undefined if the form must be shown again instead of making the call.
 */
export interface ArgumentsForm {
  readonly mode: 'form' | 'json'
  readonly json: string
  readonly values: Readonly<Record<string, string>>
  readonly errors: Readonly<Record<string, string>>
  readonly args?: string | undefined
}

/**
 * Reads a submitted form for arguments, according to the button that was pressed.
 * @param schema the JSON Schema of the arguments
 */
export function readArgumentsForm (app: FastifyInstance, sent: SubmittedForm, schema: unknown): ArgumentsForm {
  const form = app.kit.formOf(schema)
  const mode = formFieldText(sent.mode) === 'json' ? 'json' : 'form'
  const button = formFieldText(sent.do)
  const values = argumentFieldsIn(sent)
  const text = formFieldText(sent.json)
  if (mode === 'json') {
    const args = parseJsonObjectOrProblem(text, 'Arguments are')
    if (typeof args === 'string') return { mode, json: text, values, errors: { json: args } }
    const json = text.trim() === '' ? '{}' : text
    if (button !== 'form') return { mode, json: text, values, errors: {}, args: json }
    const draft = exactDraftOf(form, json)
    return draft
      ? { mode: 'form', json: text, values: draft, errors: {} }
      : { mode, json: text, values, errors: { json: 'The form cannot show these arguments without a change.' } }
  }
  if (/^(?:add|remove|choose):/.test(button)) {
    return { mode, json: '', values: form.applyButton(values, button), errors: {} }
  }
  const read = form.read(values)
  if ('errors' in read) return { mode, json: '', values, errors: read.errors }
  return button === 'json'
    ? { mode: 'json', json: formatJson(read.json), values, errors: {} }
    : { mode, json: '', values, errors: {}, args: read.json }
}

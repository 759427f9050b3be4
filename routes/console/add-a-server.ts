import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { submitEntries, type Entry, variableFieldOf, showEntries, addServerTabs, addServerTitle } from './entries.ts'
import { type Form, pagesOf, textOf } from './page.ts'

/** Page: add servers from a pasted text. The pages of catalogues and bundles link to it. */
const routes: FastifyPluginAsync = async (app) => {
  pagesOf(app).page('add-a-server', { title: addServerTitle, isInNav: true }, ({ principal }) =>
    ({ tabs: addServerTabs(app, principal, '') }))

  app.post('/add-a-server', { config: { effect: 'change' } }, async (request, reply) => {
    const form = (request.body ?? {}) as Form
    if (textOf(form.do) !== 'read') return await submitEntries(app, request, reply, form)
    const text = textOf(form.text)
    try {
      return showEntries(app, reply, { text, entries: entriesOf(app.kit.readPasted(text)) })
    } catch (error) {
      if (!(error instanceof errors.InvalidInput)) throw error
      return showEntries(app, reply, { text, errors: { text: `${error.message.replace(/^"text": /, '')}.` } })
    }
  })
}
export default routes

const entriesOf = (found: ReturnType<FastifyInstance['kit']['readPasted']>): Entry[] =>
  found.map(({ name, config, remarks, inputs }, index) => ({
    index,
    name,
    config: JSON.stringify(config, undefined, 2),
    isChosen: true,
    remarks,
    variables: inputs.map(({ key, title: label, isSecret }) => ({ key, title: label, isSecret })),
    values: Object.fromEntries(inputs.map(({ fallback = '' }, at) => [variableFieldOf(index, at), fallback]))
  }))

import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import {
  testOrStoreServers, type ServerToAdd, variableFieldName, showServersToAdd, tabsOfAddServerPage, titleOfAddServerPage
} from './entries.ts'
import { type SubmittedForm, createPageRouter, formFieldText } from './page.ts'

/**
 * The page that adds servers found in a pasted text. Its form route is also the target of the forms on the pages of
 * catalogue entries and bundles.
 */
const routes: FastifyPluginAsync = async (app) => {
  createPageRouter(app).page('add-a-server', { title: titleOfAddServerPage, isInNav: true }, ({ principal }) =>
    ({ tabs: tabsOfAddServerPage(app, principal, '') }))

  app.post('/add-a-server', { config: { effect: 'change' } }, async (request, reply) => {
    const form = (request.body ?? {}) as SubmittedForm
    if (formFieldText(form.do) !== 'read') return await testOrStoreServers(app, request, reply, form)
    const text = formFieldText(form.text)
    try {
      return showServersToAdd(app, reply, { text, entries: entriesOf(app.kit.readPasted(text)) })
    } catch (error) {
      if (!(error instanceof errors.InvalidInput)) throw error
      return showServersToAdd(app, reply, { text, errors: { text: `${error.message.replace(/^"text": /, '')}.` } })
    }
  })
}
export default routes

const entriesOf = (found: ReturnType<FastifyInstance['kit']['readPasted']>): ServerToAdd[] =>
  found.map(({ name, config, remarks, inputs }, index) => ({
    index,
    name,
    config: JSON.stringify(config, undefined, 2),
    isChosen: true,
    remarks,
    variables: inputs.map(({ key, title: label, isSecret }) => ({ key, title: label, isSecret })),
    values: Object.fromEntries(inputs.map(({ fallback = '' }, at) => [variableFieldName(index, at), fallback]))
  }))

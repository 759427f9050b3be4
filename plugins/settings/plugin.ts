import fp from 'fastify-plugin'
import { createRestrictedServerMarker } from './access/restricted.ts'
import { describeEdit } from './describe-edit.ts'
import { danglingReferenceWarnings } from './missing-names.ts'
import { Settings } from './settings.ts'
import type { Store } from '../../db/store.ts'

/** Max warnings about names that do not exist; the others are counted. */
const maxWarnings = 20

declare module 'fastify' {
  interface FastifyInstance { settings: Settings }
}

/** `app.settings`: the settings. If they cannot be read, the plugin fails, and the process does not start. */
export default fp<{ store: Store }>(async (app, { store }) => {
  const { READONLY: readonly, ALLOW_USER_STDIO: usersMayRun } = app.config.env
  const settings = await Settings.open(store, readonly, usersMayRun ? undefined : createRestrictedServerMarker())
  const warnOfMissingNames = (sentences: readonly string[]): void => {
    for (const sentence of sentences.slice(0, maxWarnings)) app.log.warn(sentence)
    if (sentences.length > maxWarnings) {
      app.log.warn(`${sentences.length - maxWarnings} more; \`tool-hub check\` lists them all`)
    }
  }
  for (const problem of settings.current.problems) app.log.warn(problem)
  warnOfMissingNames(danglingReferenceWarnings(settings.current))
  settings.on('changed', ({ problems }, former) => {
    const known = new Set(former.problems)
    for (const problem of problems) if (!known.has(problem)) app.log.warn(problem)
  })
  settings.on('edited', (next, former) => {
    // The replica that made a change has logged it; the others log it at debug level only.
    const isSilent = store.isShared === true && app.log.level !== 'debug' && app.log.level !== 'trace'
    const edit = isSilent ? undefined : describeEdit(former, next)
    if (edit === undefined) return
    if (store.isShared === true) app.log.debug(`changes of another replica are in effect: ${edit}`)
    else {
      app.log.info(`an edit of the settings file is in effect: ${edit}`)
      const known = new Set(danglingReferenceWarnings(former))
      warnOfMissingNames(danglingReferenceWarnings(next).filter((sentence) => !known.has(sentence)))
    }
  })
  settings.on('outdated', (reason) => {
    app.log.warn(
      `${reason} It has been unavailable for so long that credentials may have been revoked meanwhile: all are ` +
      'refused (503) until it is available again'
    )
  })
  app.decorate('settings', settings)
  app.addHook('onClose', async () => { await settings.close() })
}, { name: 'settings', dependencies: ['config'] })

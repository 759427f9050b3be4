import fp from 'fastify-plugin'
import { smartRoutingOf } from './options.ts'
import { SmartProvider } from './provider.ts'
import { Search } from './search.ts'

/**
 * `$smart`: a presentation of the gateway that shows the tools of a view by searching them. The routes below `$smart` ask for such views;
 * no caller knows of it otherwise.
 */
export default fp(async (app) => {
  const isProgressive = (): boolean => smartRoutingOf(app.settings.current.system).progressiveDisclosure === true
  const search = new Search(app.gateway, { isOn: false, follow: () => {}, similarity: async () => ({ reason: 'off' }) }, (err) => {
    app.log.error({ err }, 'the index of tools could not be brought up to date')
  })
  const changed = app.gateway.addPresentation('search', {
    provider: new SmartProvider(app.gateway, search, isProgressive),
    present: (presented) => search.present(presented, isProgressive())
  })
  app.settings.on('changed', (next, former) => {
    if (next.system.smartRouting !== former.system.smartRouting) changed()
  })
}, { name: 'smart-routing', dependencies: ['settings', 'gateway'] })

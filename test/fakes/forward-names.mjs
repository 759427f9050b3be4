// Loaded before a gateway (`node --import`), so that it asks the name server TEST_NAME_SERVER instead of the system's: the gateway itself
// has no option for that.
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'

const { TEST_NAME_SERVER: server } = process.env
if (server !== undefined) {
  dns.promises.Resolver = class extends dns.promises.Resolver {
    constructor (...options) {
      super(...options)
      this.setServers([server])
    }
  }
  syncBuiltinESMExports()
}

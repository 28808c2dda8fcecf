// All elements of the panels. The tabs load their own modules when they are opened.

import './verdict.js';
import './strip.js';
import './search.js';
import './traces.js';
import './compare-bar.js';
import './ghost.js';
import './tabs.js';
import './open.js';
import './keys.js';
import './live.js';
import './record.js';
import './recorded.js';
import { rememberTraces } from './recent.js';

rememberTraces();

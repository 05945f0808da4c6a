// SPDX-License-Identifier: Apache-2.0
// echarts.ts: the parts of ECharts that are used; a chunk of its own, loaded by the first chart.
import { BarChart, CustomChart, LineChart, ParallelChart, ScatterChart } from 'echarts/charts';
import {
	BrushComponent, GridComponent, MarkLineComponent, ParallelComponent, TooltipComponent,
} from 'echarts/components';
import { init, use } from 'echarts/core';
import { CanvasRenderer, SVGRenderer } from 'echarts/renderers';

use([BarChart, CustomChart, LineChart, ParallelChart, ScatterChart, BrushComponent, GridComponent,
	MarkLineComponent, ParallelComponent, TooltipComponent, CanvasRenderer, SVGRenderer]);

export { init };
